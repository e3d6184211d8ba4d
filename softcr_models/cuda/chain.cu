// The pressures that act behind a chain, of candidates' readings, by a thread for each candidate
// and input.
//
// Equations are those of `softcr_models.chain.acting`, where they are explained. What acts is
// linear in a row (reading, stops, lags) of all inputs, and the matrix is the caller's.
//
// Before this text stand `grid.cu` and a chain's constants, see `softcr_models.chain.device_chain`.

struct Futures { int batch, rows; };  // candidates, and readings of each of them: T + 1

// readings (B, T + 1, m), remembered (m (J + K),) at the first of them, acting (m (1 + J + K), m),
// offset (m,); out (B, T + 1, m)
KERNEL acting(
    const float* readings, const float* remembered, const float* acting_of, const float* offset,
    float* out, BY_VALUE Futures futures) {
    EACH(thread, futures.batch * COUNT) {
        const int input = thread % COUNT;
        const long long first = static_cast<long long>(thread / COUNT) * futures.rows * COUNT;
        const float* reading = readings + first;
        float felt[COUNT * (STOPS + LAGS) + 1], before[COUNT];
        for (int k = 0; k < COUNT * (STOPS + LAGS); ++k) felt[k] = remembered[k];
        for (int i = 0; i < COUNT; ++i) before[i] = reading[i];
        for (int row = 0; row < futures.rows; ++row) {
            float sum = offset[input];
            for (int i = 0; i < COUNT; ++i) {
                const float now = reading[row * COUNT + i], change = now - before[i];
                before[i] = now;
                sum += now * acting_of[i * COUNT + input];
                for (int j = 0; j < STOPS; ++j) {
                    const int place = i * STOPS + j;
                    float stop = felt[place] + change;
                    stop = stop > RADII[j] ? RADII[j] : stop < -RADII[j] ? -RADII[j] : stop;
                    felt[place] = stop;
                    sum += stop * acting_of[(COUNT + place) * COUNT + input];
                }
                for (int k = 0; k < LAGS; ++k) {
                    const int place = COUNT * (STOPS + k) + i;
                    const float lag = BEHIND[k] * change;
                    if (row) felt[place] = (felt[place] + lag) * LEFT[k] - lag;
                    sum += felt[place] * acting_of[(COUNT + place) * COUNT + input];
                }
            }
            out[first + row * COUNT + input] = sum;
        }
    }
}
