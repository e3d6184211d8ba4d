// A generation of the NEMPC on a device: what `evolution`, `limits`, `polish` and `bounded_minimum`
// do with arrays, for candidates (B, K, m) of K knots and m channels.
//
// Before this text stands `grid.cu` of `softcr_models.cuda`.

struct Limits { int knots, channels, first_knot_fixed; };

FUNCTION float between(float x, float low, float high) {  // NaN stays NaN
    return x < low ? low : x > high ? high : x;
}

// a knot inside the box and within a step of the knot before: `limit_knots`
FUNCTION float limited(
    float x, float before, int knot, int channel, const float* previous, const float* low,
    const float* high, const float* max_steps, const Limits& limits) {
    if (limits.first_knot_fixed && knot == 0) x = previous[channel];
    const float step = max_steps[knot * limits.channels + channel];
    return between(between(x, low[channel], high[channel]), before - step, before + step);
}

// -- evolution ------------------------------------------------------------------------------------

struct Breed {
    int parents, strangers, children;
    float mutation_probability;
    Limits limits;
};

// a candidate of the last generation, some ticks later where `to_later` (K m, K m) is given
FUNCTION float later(const float* candidate, const float* to_later, int place, int size) {
    if (!to_later) return candidate[place];
    float sum = 0;
    for (int k = 0; k < size; ++k) sum += candidate[k] * to_later[k * size + place];
    return sum;
}

// out (B, K, m): parents, strangers, children; all strangers where `begins` is 1.
// population (parents or more, K, m); normal (B, K, m), mates (2, children) and chance
// (children, 1 + K, m) are random; previous, mutation, spread, low, high (m,); max_steps (K, m).
KERNEL breed(
    const float* population, const float* normal, const long long* mates, const float* chance,
    const float* previous, const float* mutation, const float* spread, const float* to_later,
    const float* begins, const float* low, const float* high, const float* max_steps, float* out,
    BY_VALUE Breed told) {
    const int channels = told.limits.channels, size = told.limits.knots * channels;
    const int shared = told.parents + told.strangers;
    const bool anew = begins && *begins > 0.5f;
    EACH(thread, (shared + told.children) * channels) {
        const int candidate = thread / channels, channel = thread % channels;
        const int child = candidate - shared;
        const bool stranger = anew || (candidate >= told.parents && child < 0);
        int parent = candidate;
        const float* chances = chance;
        if (child >= 0) {
            chances += child * (size + channels) + channel;
            parent = static_cast<int>(mates[chances[0] < 0.5f ? child : told.children + child]);
        }
        float before = previous[channel];
        for (int knot = 0; knot < told.limits.knots; ++knot) {
            const int place = knot * channels + channel;
            const float drawn = normal[candidate * size + place];
            float x;
            if (stranger) {
                x = previous[channel] + (anew && candidate == 0 ? 0.0f : spread[channel] * drawn);
            } else {
                x = later(population + parent * size, to_later, place, size);
                if (child >= 0 && chances[(1 + knot) * channels] < told.mutation_probability)
                    x += mutation[channel] * drawn;
            }
            before = limited(
                x, before, knot, channel, previous, low, high, max_steps, told.limits);
            out[candidate * size + place] = before;
        }
    }
}

// -- costs, and what is kept ----------------------------------------------------------------------

struct Residuals { int batch, count; };

// costs (B,) of residuals (B, R), infinite where they are not finite
KERNEL costs(const float* residuals, float* out, BY_VALUE Residuals told) {
    EACH_WARP(candidate, told.batch) {
        const float* own = residuals + static_cast<long long>(candidate) * told.count;
        float part = 0;
        EACH_OF_WARP(k, told.count) part += own[k] * own[k];
        const float sum = sum_of_warp(part);
        FIRST_OF_WARP out[candidate] = sum < INFINITE ? sum : INFINITE;
    }
}

struct Kept {
    int kept, size, fitted, residuals, ticks, terms;
    int ends[32];  // of the terms' residuals
};

// Of candidates in this order: knots (kept, K m), residuals (fitted, R), and of the first one costs
// of its terms, knots and tips (N, 3), one after the other.
KERNEL gather(
    const long long* order, const float* knots, const float* residuals, const float* tip_poses,
    float* kept, float* fitted, float* best, BY_VALUE Kept told) {
    const long long first = order[0];
    EACH(k, told.kept * told.size) {
        const float x = knots[order[k / told.size] * told.size + k % told.size];
        kept[k] = x;
        if (k < told.size) best[told.terms + k] = x;
    }
    EACH(k, told.fitted * told.residuals)
        fitted[k] = residuals[order[k / told.residuals] * told.residuals + k % told.residuals];
    EACH(k, told.ticks * 3)
        best[told.terms + told.size + k] = tip_poses[(first * told.ticks * 3 + k) * 4 + 3];
    EACH_WARP(term, told.terms) {
        const float* own = residuals + first * told.residuals;
        const int begin = term ? told.ends[term - 1] : 0;
        float part = 0;
        EACH_OF_WARP(k, told.ends[term] - begin) part += own[begin + k] * own[begin + k];
        const float sum = sum_of_warp(part);
        FIRST_OF_WARP best[term] = sum;
    }
}

struct Winner { int parents, size, told; };

// The next tick's parents, and what is told of the best: the polished one becomes the first where
// it costs less, and the last parent leaves. Without `polished_costs` none is polished.
KERNEL keep(
    const float* knots, const float* costs_of, const float* best, const float* polished,
    const float* polished_costs, const float* polished_best, float* population, float* out,
    BY_VALUE Winner told) {
    const bool better = polished_costs && polished_costs[0] < costs_of[0];
    EACH(k, told.parents * told.size)
        population[k] = !better ? knots[k] : k < told.size ? polished[k] : knots[k - told.size];
    EACH(k, told.told) out[k] = better ? polished_best[k] : best[k];
}

// -- the polish -----------------------------------------------------------------------------------

#ifdef __CUDACC__
extern __shared__ double room[];
#define ROOM room
#else
#define ROOM nullptr
#endif

struct Polish {
    int samples, residuals, fractions;
    double ridge, damping, tiny, noise;
    int changes_per_unknown;
    double fraction[8];
    Limits limits;
};

// X with A X = B in place of B, of rows (A beside B), without pivoting; `row` and `column` are
// room.
FUNCTION void eliminate(double* work, int rows, int columns, double* row, double* column) {
    for (int k = 0; k < rows; ++k) {
        EACH_OF_BLOCK(j, columns) row[j] = work[k * columns + j] / work[k * columns + k];
        EACH_OF_BLOCK(i, rows) column[i] = work[i * columns + k];
        SYNC
        EACH_OF_BLOCK(place, rows * columns) {
            const int i = place / columns, j = place % columns;
            work[place] = i == k ? row[j] : work[place] - column[i] * row[j];
        }
        SYNC
    }
}
// adds a part of its mean to a diagonal, of rows of so many columns
FUNCTION void add_to_diagonal(double* work, int rows, int columns, double part, double tiny) {
    FIRST_OF_BLOCK {
        double sum = 0;
        for (int i = 0; i < rows; ++i) sum += work[i * columns + i];
        for (int i = 0; i < rows; ++i) work[i * columns + i] += part * sum / rows + tiny;
    }
    SYNC
}

// what the active-set method knows of d numbers
struct Box {
    int size;
    const double *hessian, *gradient;
    double *low, *high, *x, *target, *side;  // side: -1 and 1 where held at low and high, else 0
    double *system, *row, *column, *go;
};

// target: the minimum over the free numbers; those that are held keep their values
FUNCTION void minimum_of_free(const Box& box) {
    const int size = box.size, columns = size + 1;
    EACH_OF_BLOCK(i, size) {
        const bool free = box.side[i] == 0.0;
        double right = free ? -box.gradient[i] : box.x[i];
        for (int j = 0; j < size; ++j) {
            const bool both = free && box.side[j] == 0.0;
            box.system[i * columns + j] = both ? box.hessian[i * size + j] : i == j;
            if (free && !both) right -= box.hessian[i * size + j] * box.x[j];
        }
        box.system[i * columns + size] = right;
    }
    SYNC
    eliminate(box.system, size, columns, box.row, box.column);
    EACH_OF_BLOCK(i, size) box.target[i] = box.system[i * columns + size];
    SYNC
}
FUNCTION bool outside(double x, double low, double high) { return !(low <= x && x <= high); }

// x goes as far to the target as the box lets it; whether a bound stopped it, which then holds
FUNCTION bool moved(const Box& box) {
    double fraction = 1.0;
    int first = -1;
    for (int i = 0; i < box.size; ++i) {
        if (box.side[i] != 0.0 || !outside(box.target[i], box.low[i], box.high[i])) continue;
        const double bound = box.target[i] < box.low[i] ? box.low[i] : box.high[i];
        const double reached = (bound - box.x[i]) / (box.target[i] - box.x[i]);
        if (reached < fraction) { fraction = reached; first = i; }
    }
    for (int i = 0; i < box.size; ++i) {
        if (box.side[i] != 0.0) continue;
        const double x = box.x[i] + fraction * (box.target[i] - box.x[i]);
        box.x[i] = x < box.low[i] ? box.low[i] : x > box.high[i] ? box.high[i] : x;
    }
    if (first < 0) return false;
    box.side[first] = box.target[first] < box.low[first] ? -1.0 : 1.0;
    box.x[first] = box.side[first] < 0.0 ? box.low[first] : box.high[first];
    return true;
}
// lets go what alone would lower the cost most; whether there is such a number
FUNCTION bool released(const Box& box, double noise) {
    double most = 0.0;
    int best = -1;
    for (int i = 0; i < box.size; ++i) {
        if (box.side[i] == 0.0) continue;
        double slope = box.gradient[i], magnitude = slope < 0.0 ? -slope : slope;
        for (int j = 0; j < box.size; ++j) {
            const double part = box.hessian[i * box.size + j] * box.x[j];
            slope += part;
            magnitude += part < 0.0 ? -part : part;
        }
        const double inwards = box.side[i] * slope, own = box.hessian[i * box.size + i];
        if (inwards > noise * magnitude && inwards * inwards > most * own) {
            most = inwards * inwards / own;
            best = i;
        }
    }
    if (best < 0) return false;
    box.side[best] = 0.0;
    return true;
}
// x: `bounded_minimum`
FUNCTION void find_minimum(const Box& box, int changes, double noise) {
    EACH_OF_BLOCK(i, box.size) box.x[i] = box.side[i] = 0.0;
    SYNC
    minimum_of_free(box);
    FIRST_OF_BLOCK {
        *box.go = 0.0;
        for (int i = 0; i < box.size; ++i) {
            box.x[i] = box.target[i];
            if (!outside(box.x[i], box.low[i], box.high[i])) continue;
            box.side[i] = box.x[i] < box.low[i] ? -1.0 : 1.0;
            box.x[i] = box.side[i] < 0.0 ? box.low[i] : box.high[i];
            *box.go = 1.0;
        }
    }
    SYNC
    for (int change = 0; change < changes && *box.go != 0.0; ++change) {
        minimum_of_free(box);
        FIRST_OF_BLOCK {
            *box.go = moved(box) || released(box, noise);
        }
        SYNC
    }
}

// Candidates (fractions, K, m) on the line from the first one through the minimum of the linearised
// cost, limited; one block. `gauss_newton_proposals` of samples (S, K m) inside the box, the best
// first, residuals (S, R) and costs (S,), of which those that are not finite do not count.
KERNEL polish(
    const float* samples, const float* residuals, const float* costs_of, const float* previous,
    const float* low, const float* high, const float* max_steps, double* scratch, float* out,
    BY_VALUE Polish told) {
    const int channels = told.limits.channels, size = told.limits.knots * channels;
    const int columns = size + told.residuals;
    double* work = scratch ? scratch : ROOM;
    double* hessian = work + size * columns;
    double* gradient = hessian + size * size;
    double* next = gradient + size;
    const Box box = {size, hessian, gradient, next, next + size, next + 2 * size, next + 3 * size,
        next + 4 * size, next + 5 * size, next + size * (size + 6),
        next + size * (size + 6) + columns + 1, next + size * (size + 7) + columns + 1};
    const double* slopes = work + size;

    EACH_OF_BLOCK(place, size * columns) {
        const int i = place / columns, j = place % columns;
        const double span = high[i % channels] - low[i % channels];
        const bool of_knots = j < size;
        const float* other = of_knots ? samples + j : residuals + j - size;
        const int stride = of_knots ? size : told.residuals;
        double sum = 0.0;
        for (int k = 1; k < told.samples; ++k)
            if (costs_of[k] < INFINITE)
                sum += (static_cast<double>(samples[k * size + i]) - samples[i])
                    * (static_cast<double>(other[k * stride]) - other[0]);
        sum /= span;
        if (of_knots) sum /= high[j % channels] - low[j % channels];
        work[place] = sum;
    }
    EACH_OF_BLOCK(i, size) {
        const double bottom = low[i % channels], top = high[i % channels];
        const double below = (bottom - samples[i]) / (top - bottom);
        const double above = (top - samples[i]) / (top - bottom);
        box.low[i] = below < 0.0 ? below : 0.0;  // it lies inside, but for rounding
        box.high[i] = above > 0.0 ? above : 0.0;
    }
    SYNC
    add_to_diagonal(work, size, columns, told.ridge, told.tiny);
    eliminate(work, size, columns, box.row, box.column);
    EACH_OF_BLOCK(place, size * (size + 1)) {
        const int i = place / (size + 1), j = place % (size + 1);
        double sum = 0.0;
        for (int k = 0; k < told.residuals; ++k)
            sum += slopes[i * columns + k]
                * (j < size ? slopes[j * columns + k] : static_cast<double>(residuals[k]));
        if (j < size) hessian[i * size + j] = sum; else gradient[i] = sum;
    }
    SYNC
    add_to_diagonal(hessian, size, size, told.damping, told.tiny);
    find_minimum(box, told.changes_per_unknown * size, told.noise);

    EACH_OF_BLOCK(thread, told.fractions * channels) {
        const int proposal = thread / channels, channel = thread % channels;
        float before = previous[channel];
        for (int knot = 0; knot < told.limits.knots; ++knot) {
            const int place = knot * channels + channel;
            const double way = box.x[place] * (high[channel] - low[channel]);
            // where nothing could be fitted the best one is proposed again
            const float move = float(told.fraction[proposal] * (way - way == 0.0 ? way : 0.0));
            before = limited(
                samples[place] + move, before, knot, channel, previous, low, high, max_steps,
                told.limits);
            out[proposal * size + place] = before;
        }
    }
}
