// The dynamic Cosserat rod for CUDA, several lanes of a warp to a candidate.
//
// Equations, method and names are those of the Python modules `softcr_models.rod.kernel`,
// `linear_solver` and `rosenbrock`, which say where they come from; a test holds both texts
// together. What differs is who computes what:
//
// - Lane i of a candidate keeps row i, a node of the rod, and works on the interval above it.
// - What runs along the rod, from row to row, runs on six lanes, one for each component of a
//   twist. Each of these recursions is linear, so everything that does not depend on the row
//   before is computed on all rows at once, and one product with a 6 x 6 matrix is left per row.
// - So the inverse S^-1 of an interval's matrix and W = Y S^-1 are kept in place of its factors.
//   With k of d_s = K d_e + k:   k- = c + W (b + D k+) - k+,   d_e+ = S^-1 (b + D k+) - H d_e-.
//
// Lanes exchange numbers through shared memory, between phases that end with a barrier. A host's
// compiler runs the same text: there a phase is a loop over the lanes.
//
// Before this text stand `grid.cu`, the constants of a rod, see `source.py`, and `real`, the float
// type.

#ifdef __CUDACC__
#define EACH_LANE { const int lane = threadIdx.x % LANES; Lane& own = lanes[0]; (void)own;
#define BARRIER __syncwarp();
#define DONE } BARRIER
#define PASSED }
#define LOAD_AGAIN asm volatile("" ::: "memory");  // rather than to keep it in registers
#define LINK_OF(k, turn) __shfl_sync(0xffffffffu, own.link[turn], k, LANES)
#define ANY_OF_WARP(flag) __any_sync(0xffffffffu, flag)
#define NAN_OF_IO __int_as_float(0x7fc00000)
#else
#include <cstdint>
#define EACH_LANE for (int lane = 0; lane < LANES; ++lane) { Lane& own = lanes[lane]; (void)own;
#define BARRIER
#define DONE }
#define PASSED }
#define LOAD_AGAIN
#define LINK_OF(k, turn) lanes[k].link[turn]
#define ANY_OF_WARP(flag) (flag)
#define NAN_OF_IO NAN
#endif
#if defined(__CUDACC__)
#define UNROLL _Pragma("unroll")
#define ONE_BY_ONE _Pragma("unroll 1")
#else
#define UNROLL
#define ONE_BY_ONE
#endif

struct alignas(2 * sizeof(real)) Pair { real x, y; };
struct alignas(16) Quad { real x[16 / sizeof(real)]; };
constexpr int QUAD = 16 / sizeof(real);

constexpr real ZERO = 0, ONE = 1, HALF = real(0.5);

// -- what a candidate shares, and what a lane keeps ---------------------------------------------

// what all rows of a candidate share
struct Numbers {
    real payload;     // carried by the last interval, per length
    real stiffening;  // change of the bending compliance per squared curvature
    real alpha;
};
struct alignas(16) Shared {
    Numbers numbers;

    alignas(16) real inverse[ROWS - 1][36];       // S^-1 of each interval; before it, S's own part
    alignas(16) real carry[ROWS - 1][36];         // H
    alignas(16) real wrench_carry[ROWS - 1][36];  // W; before that Y
    alignas(16) real slope[ROWS][36];         // K of each row
#if FITTED
    alignas(16) real effective_mass[ROWS][36];  // N of each row
#endif
    alignas(16) real state[ROWS][12];      // of each row: velocity, elastic wrench
    alignas(16) real base[8];              // base state
    alignas(16) real increments[3][ROWS][12];  // of the stages: velocities, then wrenches
    alignas(16) real frozen[ROWS - 1][36];     // when linearised: P (18), strain (6), wrench (6)
    alignas(16) real rows[ROWS][12];           // for the lane below: velocities, then wrenches
    alignas(16) real turn[ROWS - 1][12];       // rotation from a row to the next; of poses: and way
    alignas(16) real first[ROWS][6], second[ROWS][6], third[ROWS][6];
    alignas(16) real section[SEGMENTS][36];    // C, 1/C, D, 1/D, a D + 1, 1/(a D + 1)
    alignas(16) real kept_state[ROWS][12];     // before a step, or after one that holds
    alignas(16) real kept_base[8];
    alignas(16) real actuation[ROWS][12];  // wrench when a piece of a step begins, and its change
    real density[ROWS + 2];        // mass per length of each interval
    real decay[8];                 // of the base state, in a sub-step
    int sound[LANES];
};

struct Lane {
    real w[6];              // in this sub-step, with the tendons of the exact model
    real link[2];           // of a chain along the rod, at one row and at the next, by turns
    real columns[4][6];     // of S^-1, H, W and K while they are made
    real strain[6], velocity[6], stress[6];  // in the middle of the interval
    real balance[6];        // of the interval, what does not depend on other intervals
    real mean_turn[9];      // mean rotation over the interval
    real density;           // mass per length of the interval
    real twice_per_density;
    bool sound;             // whether what was written last is finite
#if VARYING
    real mean_w[6];         // of the interval
#endif
#if TENDONS
    real pull[6];           // of all but these tendons
    real tension_begin[TENDONS], tension_change[TENDONS], tension[TENDONS];
#endif
};


FUNCTION int segment_of(int row) {
    int a = 0;
    UNROLL for (int next = 1; next < SEGMENTS; ++next) a += row >= FIRST_ROW[next];
    return a;
}
FUNCTION bool ends(int row) { return (ENDS >> row) & 1; }
FUNCTION bool has_interval(int row) { return row < ROWS && !ends(row); }

template <int N> FUNCTION void load(real* to, const real* from) {
    UNROLL for (int k = 0; k < N; k += 2) {
        const Pair pair = *reinterpret_cast<const Pair*>(from + k);
        to[k] = pair.x; to[k + 1] = pair.y;
    }
}
template <int N> FUNCTION void load_wide(real* to, const real* from) {
    UNROLL for (int k = 0; k < N; k += QUAD) {
        const Quad quad = *reinterpret_cast<const Quad*>(from + k);
        UNROLL for (int j = 0; j < QUAD; ++j) to[k + j] = quad.x[j];
    }
}
template <int N> FUNCTION void store(real* to, const real* from) {
    UNROLL for (int k = 0; k < N; k += 2) {
        Pair pair; pair.x = from[k]; pair.y = from[k + 1];
        *reinterpret_cast<Pair*>(to + k) = pair;
    }
}
template <int N> FUNCTION void store_wide(real* to, const real* from) {
    UNROLL for (int k = 0; k < N; k += QUAD) {
        Quad quad;
        UNROLL for (int j = 0; j < QUAD; ++j) quad.x[j] = from[k + j];
        *reinterpret_cast<Quad*>(to + k) = quad;
    }
}

// -- twists and wrenches, linear first ----------------------------------------------------------

FUNCTION void add_cross(real* out, const real* x, const real* y) {
    out[0] += x[1] * y[2]; out[1] += x[2] * y[0]; out[2] += x[0] * y[1];
    out[0] -= x[2] * y[1]; out[1] -= x[0] * y[2]; out[2] -= x[1] * y[0];
}
FUNCTION void subtract_cross(real* out, const real* x, const real* y) { add_cross(out, y, x); }
FUNCTION void add_ad(real* out, const real* x, const real* y) {
    add_cross(out, x + 3, y);
    add_cross(out, x, y + 3);
    add_cross(out + 3, x + 3, y + 3);
}
// out += [w x n; q x n + w x m], which is -ad(x)^T y
FUNCTION void subtract_ad_transposed(real* out, const real* x, const real* y) {
    add_cross(out, x + 3, y);
    add_cross(out + 3, x, y);
    add_cross(out + 3, x + 3, y + 3);
}
FUNCTION void add_ad_transposed(real* out, const real* x, const real* y) {
    subtract_cross(out, x + 3, y);
    subtract_cross(out + 3, x, y);
    subtract_cross(out + 3, x + 3, y + 3);
}
// (row of a matrix in shared memory) y, in two chains
FUNCTION real dot6(const real* row, const real* y) {
    real m[6];
    load<6>(m, row);
    const real even = m[0] * y[0] + m[2] * y[2] + m[4] * y[4];
    const real odd = m[1] * y[1] + m[3] * y[3] + m[5] * y[5];
    return even + odd;
}
// out (6) += a (36) y (6), a in shared memory
FUNCTION void add_product(real* out, const real* a, const real* y) {
    UNROLL for (int r = 0; r < 6; r += 2) {
        real m[12];
        load_wide<12>(m, a + 6 * r);
        UNROLL for (int k = 0; k < 6; ++k) {
            out[r] += m[k] * y[k];
            out[r + 1] += m[6 + k] * y[k];
        }
    }
}
// Of t = |u|^2, the series of `twists.rotate_back`: sin(|u|) / |u|, (1 - cos(|u|)) / t and
// (|u| - sin(|u|)) / (|u| t).
FUNCTION real sine_of(real t) {
    return ONE + t * (real(-1.0 / 6) + t * (real(1.0 / 120) + t * (real(-1.0 / 5040)
        + t * real(1.0 / 362880))));
}
FUNCTION real cosine_of(real t) {
    return HALF + t * (real(-1.0 / 24) + t * (real(1.0 / 720) + t * real(-1.0 / 40320)));
}
FUNCTION real cubic_of(real t) {
    return real(1.0 / 6) + t * (real(-1.0 / 120) + t * (real(1.0 / 5040)
        + t * real(-1.0 / 362880)));
}
// Exp(-u) as a matrix (9)
FUNCTION void turn_back(real* r, const real* u) {
    const real t = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
    const real sine = sine_of(t), cosine = cosine_of(t);
    const real cx = cosine * u[0], cy = cosine * u[1], cz = cosine * u[2];
    const real sx = sine * u[0], sy = sine * u[1], sz = sine * u[2];
    r[0] = ONE - cy * u[1] - cz * u[2];
    r[4] = ONE - cx * u[0] - cz * u[2];
    r[8] = ONE - cx * u[0] - cy * u[1];
    r[1] = cx * u[1] + sz; r[3] = cx * u[1] - sz;
    r[2] = cx * u[2] - sy; r[6] = cx * u[2] + sy;
    r[5] = cy * u[2] + sx; r[7] = cy * u[2] - sx;
}
FUNCTION void multiply3(real* out, const real* a, const real* b) {
    UNROLL for (int r = 0; r < 3; ++r)
        UNROLL for (int c = 0; c < 3; ++c)
            out[3 * r + c] = a[3 * r] * b[c] + a[3 * r + 1] * b[3 + c] + a[3 * r + 2] * b[6 + c];
}

// -- elimination of 6 x 6 blocks without pivoting -----------------------------------------------

FUNCTION void factorise(real* a) {
    UNROLL for (int k = 0; k < 6; ++k) {
        a[7 * k] = ONE / a[7 * k];
        UNROLL for (int r = k + 1; r < 6; ++r) {
            a[6 * r + k] *= a[7 * k];
            UNROLL for (int c = k + 1; c < 6; ++c) a[6 * r + c] -= a[6 * r + k] * a[6 * k + c];
        }
    }
}
FUNCTION void substitute(const real* a, real* y) {
    UNROLL for (int r = 1; r < 6; ++r)
        UNROLL for (int k = 0; k < r; ++k) y[r] -= a[6 * r + k] * y[k];
    UNROLL for (int r = 5; r >= 0; --r) {
        UNROLL for (int k = r + 1; k < 6; ++k) y[r] -= a[6 * r + k] * y[k];
        y[r] *= a[7 * r];
    }
}

// -- what a rod is made of ----------------------------------------------------------------------

FUNCTION const real* compliance(const Shared& shared, int a) { return shared.section[a]; }
FUNCTION const real* stiffness(const Shared& shared, int a) { return shared.section[a] + 6; }
FUNCTION const real* relaxation(const Shared& shared, int a) { return shared.section[a] + 12; }
FUNCTION const real* relaxation_rate(const Shared& shared, int a) { return shared.section[a] + 18; }
FUNCTION const real* damping(const Shared& shared, int a) { return shared.section[a] + 24; }
FUNCTION const real* per_damping(const Shared& shared, int a) { return shared.section[a] + 30; }

// Ends the life of what lanes without an interval do not set: registers are free in between.
FUNCTION void forget(Lane& own) {
    UNROLL for (int k = 0; k < 6; ++k)
        own.strain[k] = own.velocity[k] = own.stress[k] = own.balance[k] = ZERO;
    UNROLL for (int k = 0; k < 9; ++k) own.mean_turn[k] = ZERO;
#if VARYING
    UNROLL for (int k = 0; k < 6; ++k) own.mean_w[k] = ZERO;
#endif
    UNROLL for (int k = 0; k < 6; ++k)
        own.columns[0][k] = own.columns[1][k] = own.columns[2][k] = own.columns[3][k] = ZERO;
    own.link[0] = own.link[1] = ZERO;
}

FUNCTION real positive_part(real x) { return x > ZERO ? x : ZERO * x; }

FUNCTION real inertia_of(const Lane& own, int a, int k) {
    return k < 3 ? own.density
        : k < 5 ? own.density * BENDING_INERTIA[a] : own.density * TORSION_INERTIA[a];
}
FUNCTION void add_payload_momentum(real* out, const real* y, real carried) {
    const real lever = PAYLOAD_LEVER;
    const real along_x = carried * (y[0] + lever * y[4]);
    const real along_y = carried * (y[1] - lever * y[3]);
    out[0] += along_x;
    out[1] += along_y;
    out[2] += carried * y[2];
    out[3] -= lever * along_y;
    out[4] += lever * along_x;
}
FUNCTION void multiply_inertia(
    real* out, const real* y, const Lane& own, const Numbers& numbers, int row, int a) {
    UNROLL for (int k = 0; k < 6; ++k) out[k] = inertia_of(own, a, k) * y[k];
    if (row == PAYLOAD_ROW) add_payload_momentum(out, y, numbers.payload);
}
// row becomes M^-1 row times two
FUNCTION void accelerate(real* row, const Lane& own, const Numbers& numbers, int i, int a) {
    const real share = own.twice_per_density;
    const real bending = share * PER_BENDING_INERTIA[a], torsion = share * PER_TORSION_INERTIA[a];
    if (i == PAYLOAD_ROW) {
        const real lever = PAYLOAD_LEVER, carried = numbers.payload;
        const real whole = own.density + carried;
        const real turning = own.density * BENDING_INERTIA[a] + carried * lever * lever;
        const real coupling = carried * lever;
        const real both = real(2) / (whole * turning - coupling * coupling);
        const real x = row[0], y = row[1];
        row[0] = both * (turning * x - coupling * row[4]);
        row[4] = both * (whole * row[4] - coupling * x);
        row[1] = both * (turning * y + coupling * row[3]);
        row[3] = both * (whole * row[3] + coupling * y);
        row[2] *= real(2) / whole;
        row[5] *= torsion;
    } else {
        UNROLL for (int k = 0; k < 3; ++k) row[k] *= share;
        row[3] *= bending;
        row[4] *= bending;
        row[5] *= torsion;
    }
}
// rest (2): m - m / f of a row's wrench s, see `stiffening`
FUNCTION void unresisted(real* rest, const real* s, const real* c, const Numbers& numbers) {
    const real x = c[3] * s[3], y = c[4] * s[4];
    real factor = ONE + numbers.stiffening * (x * x + y * y) - STIFFEST;
    factor = STIFFEST + positive_part(factor);
    factor = SOFTEST - positive_part(SOFTEST - factor);
    const real share = ONE - ONE / factor;
    rest[0] = share * s[3];
    rest[1] = share * s[4];
}
#if TENDONS
// acting (6) += wrench of the tendons of the exact model at a row, by its wrench s
FUNCTION void add_tendons(real* acting, const real* s, const real* c, const Lane& own, int row) {
    const int a = segment_of(row);
    real strain[6];
    UNROLL for (int k = 0; k < 6; ++k) strain[k] = c[k] * s[k];
    strain[2] += ONE;
    UNROLL for (int tendon = 0; tendon < TENDONS; ++tendon) {
        if (a > TENDON_REACHES[tendon]) continue;
        const real* r = TENDON_OFFSETS + 6 * (TENDONS * row + tendon);
        real q[3] = {strain[0] + r[3], strain[1] + r[4], strain[2] + r[5]};
        add_cross(q, strain + 3, r);
        const real pull = own.tension[tendon] / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2]);
        UNROLL for (int k = 0; k < 3; ++k) { q[k] *= pull; acting[k] -= q[k]; }
        subtract_cross(acting + 3, r, q);
    }
}
#endif

// out (6) += ad(e)^T M e - M [g R^T e_z; 0] of the rigid body at the end of segment a
#if FITTED
FUNCTION void add_body_force(real* out, const real* velocity, const real* up, int a) {
    const real* mass = BODY_MASS + 36 * a;
    real momentum[6];
    UNROLL for (int r = 0; r < 6; ++r) {
        real sum = ZERO;
        UNROLL for (int k = 0; k < 6; ++k) sum += mass[6 * r + k] * velocity[k];
        UNROLL for (int k = 0; k < 3; ++k) out[r] -= mass[6 * r + k] * up[k];
        momentum[r] = sum;
    }
    add_ad_transposed(out, velocity, momentum);
}
// out += X^T y of the connector after segment a
FUNCTION void add_across(real* out, const real* y, int a) {
    const real* adjoint = ADJOINT + 36 * a;
    UNROLL for (int r = 0; r < 6; ++r)
        UNROLL for (int k = 0; k < 6; ++k) out[r] += adjoint[6 * k + r] * y[k];
}
#else
FUNCTION void add_across(real* out, const real* y, int) {
    UNROLL for (int k = 0; k < 6; ++k) out[k] += y[k];
}
#endif

// -- a candidate's section, state and inputs ----------------------------------------------------

template <class IO>
FUNCTION void set_section(
    Lane* lanes, Shared& shared, Numbers& numbers, const IO* parameters, real substep) {
    real tip_mass = parameters[BENDINGS];
    numbers.payload = ZERO;
    if (PAYLOADS) {
        const real payload = parameters[BENDINGS + 2];
        const real carried = positive_part(payload);
        tip_mass = tip_mass + payload - carried;
        numbers.payload = carried / INTERVAL_LENGTH[SEGMENTS - 1];
    }
    numbers.stiffening = ZERO;
    if (STIFFENS)
        numbers.stiffening = real(parameters[BENDINGS + 2 + PAYLOADS]) * PER_SQUARED_CURVATURE;
    const real slower = parameters[BENDINGS + 1];
    numbers.alpha = ONE / (GAMMA * substep);
    EACH_LANE
        for (int item = lane; item < 6 * SEGMENTS; item += LANES) {
            const int a = item / 6, k = item % 6;
            const real bending = parameters[BENDINGS > 1 ? a : 0];
            const real soft = COMPLIANCE[item] + BENDING_SHARE[item] * bending;
            const real slow = RELAXATION[item] * slower;
            real* section = shared.section[a];
            section[k] = soft;
            section[6 + k] = ONE / soft;
            section[12 + k] = slow;
            section[18 + k] = ONE / slow;
            section[24 + k] = numbers.alpha * slow + ONE;
            section[30 + k] = ONE / section[24 + k];
            if (a == 0) shared.decay[k] = exp(-substep / slow);
        }
        const int row = lane < ROWS ? lane : 0;
        own.density = LINE_DENSITY[segment_of(row)] + tip_mass * TIP_SHARE[row];
        own.twice_per_density = real(2) / own.density;
        shared.density[row] = own.density;
    DONE
}

template <class IO> FUNCTION void load_state(Lane* lanes, Shared& shared, const IO* state) {
    EACH_LANE
        if (lane < ROWS) {
            const int a = segment_of(lane);
            const bool begins = lane == FIRST_ROW[a];
            real row[12];
            UNROLL for (int k = 0; k < 6; ++k) {
                row[6 + k] = state[6 * (INTERVALS + lane) + k];
                row[k] = begins ? ZERO : real(state[6 * (lane - a - 1) + k]);
                if (lane == 0)
                    shared.base[k] = real(state[6 * (INTERVALS + ROWS) + k]) - row[6 + k];
            }
#if SEGMENTS > 1
            if (begins && a > 0) {
                const IO* before = state + 6 * (lane - 1 - (a - 1) - 1);
                UNROLL for (int r = 0; r < 6; ++r) {
#if FITTED
                    UNROLL for (int k = 0; k < 6; ++k)
                        row[r] += ADJOINT[36 * (a - 1) + 6 * r + k] * real(before[k]);
#else
                    row[r] = before[r];
#endif
                }
            }
#endif
            store_wide<12>(shared.state[lane], row);
        }
    DONE
}

template <class IO> FUNCTION bool finite(IO x) { return x - x == IO(0); }

template <class IO>
FUNCTION void store_state(Lane* lanes, const Shared& shared, IO* state, bool writes) {
    EACH_LANE
        own.sound = true;
        if (lane < ROWS) {
            const int a = segment_of(lane);
            const real* row = shared.state[lane];
            UNROLL for (int k = 0; k < 6; ++k) {
                const IO base = IO(shared.base[k] + shared.state[0][6 + k]);
                own.sound = own.sound && finite(IO(row[k])) && finite(IO(row[6 + k]))
                    && finite(base);
                if (writes) {
                    state[6 * (INTERVALS + lane) + k] = IO(row[6 + k]);
                    if (lane != FIRST_ROW[a]) state[6 * (lane - a - 1) + k] = IO(row[k]);
                    if (lane == 0) state[6 * (INTERVALS + ROWS) + k] = base;
                }
            }
        }
    DONE
}

FUNCTION real pulled(real input, int i) { return PULLS[i] ? positive_part(input) : input; }

// actuation of a piece of a step whose inputs go from `now` to `later`
template <class IO>
FUNCTION void set_actuation(
    Lane* lanes, Shared& shared, const IO* now, const IO* later, real begins, real ends_at) {
    EACH_LANE
        const int row = lane < ROWS ? lane : ROWS - 1;
        const real* place = ACTUATION + 6 * INPUTS * (FITTED ? row : segment_of(row));
        UNROLL for (int k = 0; k < 6; ++k) {
            real begin = ZERO, end = ZERO;
            for (int i = 0; i < INPUTS; ++i) {
                begin += place[INPUTS * k + i] * pulled(now[i], i);
                end += place[INPUTS * k + i] * pulled(later[i], i);
            }
            if (lane < ROWS) {
                shared.actuation[row][k] = begin + begins * (end - begin);
                shared.actuation[row][6 + k] = (ends_at - begins) * (end - begin);
            }
        }
#if TENDONS
        UNROLL for (int tendon = 0; tendon < TENDONS; ++tendon) {
            const real begin = positive_part(now[TENDON_INPUTS[tendon]]);
            const real change = positive_part(later[TENDON_INPUTS[tendon]]) - begin;
            own.tension_begin[tendon] = begin + begins * change;
            own.tension_change[tendon] = (ends_at - begins) * change;
        }
#endif
    DONE
}

// -- rates: `kernel.derivative` -----------------------------------------------------------------

// Rates along the rod, on six lanes: `first` holds what is known of s' and gets s', `second` what
// is known of e'+ + e'-, `third` gets e'.
#if FITTED
FUNCTION real inertia_at(const Shared& shared, int i, int k) {
    const int a = segment_of(i);
    const real share = k < 3 ? ONE : k < 5 ? BENDING_INERTIA[a] : TORSION_INERTIA[a];
    return share * shared.density[i];
}
FUNCTION void chain_of_rates(Lane* lanes, Shared& shared, const Numbers&) {
    for (int i = ROWS - 2; i >= 0; --i) {
        const int a = segment_of(i);
        if (ends(i)) {
            EACH_LANE
                if (lane < 6) {
                    real sum = ZERO;
                    UNROLL for (int k = 0; k < 6; ++k)
                        sum += ADJOINT[36 * a + 6 * k + lane] * relaxation(shared, a + 1)[k]
                            * shared.first[i + 1][k];
                    shared.first[i][lane] += relaxation_rate(shared, a)[lane] * sum;
                }
            DONE
        } else {
            EACH_LANE
                if (lane < 6) {
                    const real damping = real(4) * relaxation(shared, a)[lane];
                    shared.second[i][lane] += damping * shared.first[i + 1][lane]
                        / (INTERVAL_LENGTH[a] * inertia_at(shared, i, lane));
                }
            DONE
            EACH_LANE
                if (lane < 6) {
                    real y[6];
                    load<6>(y, shared.second[i]);
                    const real push = dot6(shared.effective_mass[i] + 6 * lane, y);
                    shared.first[i][lane] += relaxation_rate(shared, a)[lane] * push
                        - shared.first[i + 1][lane];
                }
            DONE
        }
    }
    EACH_LANE
        if (lane < 6) shared.third[0][lane] = ZERO;
    DONE
    for (int i = 0; i < ROWS - 1; ++i) {
        const int a = segment_of(i);
        if (ends(i)) {
            EACH_LANE
                if (lane < 6) {
                    real sum = ZERO;
                    UNROLL for (int k = 0; k < 6; ++k)
                        sum += ADJOINT[36 * a + 6 * lane + k] * shared.third[i][k];
                    shared.third[i + 1][lane] = sum;
                }
            DONE
            EACH_LANE
                if (lane < 6) {
                    real y[6];
                    load<6>(y, shared.third[i + 1]);
                    shared.first[i + 1][lane] -= relaxation_rate(shared, a + 1)[lane]
                        * dot6(shared.effective_mass[i + 1] + 6 * lane, y);
                }
            DONE
        } else {
            EACH_LANE
                if (lane < 6) shared.second[i][lane] -= shared.third[i][lane];
            DONE
            EACH_LANE
                if (lane < 6) {
                    real v[6];
                    load<6>(v, shared.second[i]);
                    const real push = dot6(shared.effective_mass[i] + 6 * lane, v);
                    shared.first[i + 1][lane] -= relaxation_rate(shared, a)[lane] * push;
                    shared.third[i + 1][lane] = shared.second[i][lane] - real(4) * push
                        / (INTERVAL_LENGTH[a] * inertia_at(shared, i, lane));
                }
            DONE
        }
    }
}
#else
FUNCTION void chain_of_rates(Lane* lanes, Shared& shared, const Numbers& numbers) {
    EACH_LANE
        if (lane < 6) {
            real rate = shared.first[ROWS - 1][lane];
            UNROLL for (int i = ROWS - 2; i >= 0; --i) {
                const int a = segment_of(i);
                if (ends(i))
                    rate = shared.first[i][lane] + relaxation_rate(shared, a)[lane]
                        * relaxation(shared, a + 1)[lane] * rate;
                else
                    rate = shared.first[i][lane] - rate;
                shared.first[i][lane] = rate;
            }
        }
    DONE
    EACH_LANE
        if (has_interval(lane)) {
            const int a = segment_of(lane);
            const real per_length = real(2) / INTERVAL_LENGTH[a];
            real row[6], relaxed[6], next[6];
            load<6>(relaxed, relaxation(shared, a));
            load<6>(next, shared.first[lane + 1]);
            UNROLL for (int k = 0; k < 6; ++k)
                row[k] = own.balance[k] + per_length * relaxed[k] * next[k];
            accelerate(row, own, numbers, lane, a);
            store<6>(shared.second[lane], row);
        }
    DONE
    EACH_LANE
        if (lane < 6) {
            real rate = ZERO;
            UNROLL for (int i = 0; i < ROWS; ++i) {
                shared.third[i][lane] = rate;
                if (!ends(i)) rate = shared.second[i][lane] - rate;
            }
        }
    DONE
}
#endif

// Rates of the stage, which stands in `rows`: e' to `third`, s' to `first`.
FUNCTION void derivative(Lane* lanes, Shared& shared, const Numbers& numbers) {
#if VARYING || SEGMENTS > 1
    EACH_LANE
        if (lane < ROWS) {
#if TENDONS
            real s[6];
            load<6>(s, shared.rows[lane] + 6);
            UNROLL for (int k = 0; k < 6; ++k) own.w[k] = own.pull[k];
            add_tendons(own.w, s, compliance(shared, segment_of(lane)), own, lane);
#endif
            store<6>(shared.third[lane], own.w);
        }
    DONE
#endif
    // strains, compatibility and rotations of all intervals; wrenches that act at ends
    EACH_LANE
        forget(own);
        if (lane < ROWS) {
            const int a = segment_of(lane);
            if (!ends(lane)) {
                real c[6], stiff[6], relaxed[6], e[6], s[6], e_next[6], s_next[6], row[6];
                load<6>(c, compliance(shared, a));
                load<6>(stiff, stiffness(shared, a));
                load<6>(relaxed, relaxation(shared, a));
                load<6>(e, shared.rows[lane]);
                load<6>(s, shared.rows[lane] + 6);
                load<6>(e_next, shared.rows[lane + 1]);
                load<6>(s_next, shared.rows[lane + 1] + 6);
                const real per_length = ONE / INTERVAL_LENGTH[a];
                UNROLL for (int k = 0; k < 6; ++k) {
                    own.stress[k] = HALF * (s[k] + s_next[k]);
                    own.velocity[k] = HALF * (e[k] + e_next[k]);
                    own.strain[k] = c[k] * own.stress[k];
                    row[k] = (e_next[k] - e[k]) * per_length;
                }
                own.strain[2] += ONE;
                add_ad(row, own.strain, own.velocity);
                UNROLL for (int k = 0; k < 6; ++k) {
                    // the sum of both rates s' of the interval
                    row[k] *= real(2) * stiff[k];
                    own.balance[k] = (s_next[k] - s[k]) * per_length;
                    relaxed[k] *= row[k];
                    own.balance[k] -= relaxed[k] * per_length;
                    own.stress[k] += HALF * relaxed[k];
                }
                store<6>(shared.first[lane], row);
                real turn[9], part[9], u[3], begin[3], change[3];
                const real length = INTERVAL_LENGTH[a] / SUBINTERVALS;
                const real weight = HALF / SUBINTERVALS;
                UNROLL for (int k = 0; k < 3; ++k) {
                    begin[k] = length * c[k + 3] * s[k + 3];
                    change[k] = length * c[k + 3] * s_next[k + 3] - begin[k];
                }
                UNROLL for (int j = 0; j < SUBINTERVALS; ++j) {
                    const real fraction = (j + STRAIN_POINT) / SUBINTERVALS;
                    UNROLL for (int k = 0; k < 3; ++k)
                        u[k] = begin[k] + fraction * change[k];
                    turn_back(part, u);
                    if (j == 0) {
                        UNROLL for (int k = 0; k < 9; ++k) turn[k] = part[k];
                    } else {
                        real product[9];
                        multiply3(product, part, turn);
                        UNROLL for (int k = 0; k < 9; ++k) turn[k] = product[k];
                    }
                    const real share = j + 1 < SUBINTERVALS ? 2 * weight : weight;
                    UNROLL for (int k = 0; k < 9; ++k)
                        own.mean_turn[k] = j == 0 ? share * turn[k] + (k % 4 ? ZERO : weight)
                                                  : own.mean_turn[k] + share * turn[k];
                }
                store<8>(shared.turn[lane], turn);
                shared.turn[lane][8] = turn[8];
                if (STIFFENS) {
                    real below[2], above[2];
                    unresisted(below, s, c, numbers);
                    unresisted(above, s_next, c, numbers);
                    UNROLL for (int k = 0; k < 2; ++k) {
                        own.balance[3 + k] -= (above[k] - below[k]) * per_length;
                        own.stress[3 + k] -= HALF * (above[k] + below[k]);
                    }
                }
#if VARYING
                real acting_next[6];
                load<6>(acting_next, shared.third[lane + 1]);
                UNROLL for (int k = 0; k < 6; ++k) {
                    own.mean_w[k] = HALF * (own.w[k] + acting_next[k]);
                    own.stress[k] -= own.mean_w[k];
                    own.balance[k] -= (acting_next[k] - own.w[k]) * per_length;
                }
#else
                UNROLL for (int k = 0; k < 6; ++k) own.stress[k] -= own.w[k];
#endif
            } else if (lane < ROWS - 1) {
                UNROLL for (int k = 0; k < 9; ++k) shared.turn[lane][k] = k % 4 ? ZERO : ONE;
#if FITTED
                if (a < SEGMENTS - 1)
                    UNROLL for (int k = 0; k < 9; ++k)
                        shared.turn[lane][k] = ADJOINT[36 * a + 6 * (k / 3) + k % 3];
#endif
            }
        }
    DONE
    // where up is at each row; then all of the balance that is known, and what stands at ends
    EACH_LANE
        if (lane < ROWS) {
            const int a = segment_of(lane);
            real up[3] = {GRAVITY[0], GRAVITY[1], GRAVITY[2]};
            UNROLL for (int i = 0; i < ROWS - 1; ++i) {
                real turn[12], next[3];
                load_wide<12>(turn, shared.turn[i]);
                UNROLL for (int r = 0; r < 3; ++r)
                    next[r] = turn[3 * r] * up[0] + turn[3 * r + 1] * up[1]
                        + turn[3 * r + 2] * up[2];
                UNROLL for (int r = 0; r < 3; ++r) up[r] = i < lane ? next[r] : up[r];
            }
            if (!ends(lane)) {
                real momentum[6], mean_up[3];
                UNROLL for (int r = 0; r < 3; ++r)
                    mean_up[r] = own.mean_turn[3 * r] * up[0] + own.mean_turn[3 * r + 1] * up[1]
                        + own.mean_turn[3 * r + 2] * up[2];
                multiply_inertia(momentum, own.velocity, own, numbers, lane, a);
                subtract_ad_transposed(own.balance, own.strain, own.stress);
                add_ad_transposed(own.balance, own.velocity, momentum);
                UNROLL for (int k = 0; k < 3; ++k) own.balance[k] -= own.density * mean_up[k];
                if (lane == PAYLOAD_ROW) {
                    const real carried = numbers.payload, lever = PAYLOAD_LEVER;
                    UNROLL for (int k = 0; k < 3; ++k) own.balance[k] -= carried * mean_up[k];
                    own.balance[3] += carried * lever * mean_up[1];
                    own.balance[4] -= carried * lever * mean_up[0];
                }
#if IN_FLUID
                UNROLL for (int k = 0; k < 6; ++k)
                    own.balance[k] -= DRAG[6 * a + k] * own.velocity[k];
                UNROLL for (int k = 0; k < 3; ++k)
                    own.balance[k] += DISPLACED[a] * mean_up[k];
#endif
#if FITTED
                real known[6];
                UNROLL for (int k = 0; k < 6; ++k) known[k] = own.balance[k];
                accelerate(known, own, numbers, lane, a);
                store<6>(shared.second[lane], known);
#endif
            } else {
                real row[6], s[6], rest[2];
                load<6>(s, shared.rows[lane] + 6);
                UNROLL for (int k = 0; k < 6; ++k) row[k] = own.w[k] - s[k];
                if (STIFFENS) {
                    unresisted(rest, s, compliance(shared, a), numbers);
                    row[3] += rest[0];
                    row[4] += rest[1];
                }
#if FITTED
                real e[6];
                load<6>(e, shared.rows[lane]);
                add_body_force(row, e, up, a);
#endif
#if SEGMENTS > 1
                if (a < SEGMENTS - 1) {
                    real beyond[6];
                    load<6>(beyond, shared.rows[lane + 1] + 6);
                    if (STIFFENS) {
                        unresisted(rest, beyond, compliance(shared, a + 1), numbers);
                        beyond[3] -= rest[0];
                        beyond[4] -= rest[1];
                    }
                    UNROLL for (int k = 0; k < 6; ++k) beyond[k] -= shared.third[lane + 1][k];
                    add_across(row, beyond, a);
                }
#endif
                UNROLL for (int k = 0; k < 6; ++k) row[k] *= relaxation_rate(shared, a)[k];
                store<6>(shared.first[lane], row);
            }
        }
    DONE
    chain_of_rates(lanes, shared, numbers);
}

// -- the linear systems: `linear_solver` --------------------------------------------------------

// entry (i, j) of v^
FUNCTION real hat(const real* v, int i, int j) {
    return i == j ? ZERO : j == (i + 1) % 3 ? -v[(i + 2) % 3] : v[(i + 1) % 3];
}
// P = (alpha I + ad(eta))^-1: its diagonal block (9), then its upper right block (9)
FUNCTION void inverse_of_shifted_ad(real* inverse, real alpha, const real* velocity) {
    const real wx = velocity[3], wy = velocity[4], wz = velocity[5];
    const real scale = ONE / (alpha * (alpha * alpha + wx * wx + wy * wy + wz * wz));
    const real aa = alpha * alpha * scale;
    const real ax = alpha * wx * scale, ay = alpha * wy * scale, az = alpha * wz * scale;
    real* d = inverse;
    d[0] = aa + wx * wx * scale;
    d[4] = aa + wy * wy * scale;
    d[8] = aa + wz * wz * scale;
    d[1] = wx * wy * scale + az;
    d[3] = wx * wy * scale - az;
    d[2] = wx * wz * scale - ay;
    d[6] = wx * wz * scale + ay;
    d[5] = wy * wz * scale + ax;
    d[7] = wy * wz * scale - ax;
    real q[9];
    UNROLL for (int c = 0; c < 3; ++c) {
        q[c] = velocity[1] * d[6 + c] - velocity[2] * d[3 + c];
        q[3 + c] = velocity[2] * d[c] - velocity[0] * d[6 + c];
        q[6 + c] = velocity[0] * d[3 + c] - velocity[1] * d[c];
    }
    multiply3(inverse + 9, d, q);
    UNROLL for (int k = 9; k < 18; ++k) inverse[k] = -inverse[k];
}
// product = P (ad(xi) / 2 + shift I), stored as P
FUNCTION void inverse_times_shifted_ad(
    real* product, const real* inverse, const real* strain, real shift) {
    real half_u[9], half_nu[9], other[9];
    UNROLL for (int k = 0; k < 9; ++k) {
        half_u[k] = k % 4 ? HALF * hat(strain + 3, k / 3, k % 3) : shift;
        half_nu[k] = HALF * hat(strain, k / 3, k % 3);
    }
    multiply3(product, inverse, half_u);
    multiply3(product + 9, inverse, half_nu);
    multiply3(other, inverse + 9, half_u);
    UNROLL for (int k = 0; k < 9; ++k) product[9 + k] += other[k];
}
// entry of Q = (shift I + ad(xi)^T) diag(gain) + adT(lam)
FUNCTION real stress_to_balance(
    const real* strain, const real* lam, const real* gain, real shift, int r, int c) {
    const int i = r % 3, j = c % 3;
    if (i == j) return r == c ? shift * gain[c] : ZERO;
    if (r < 3 && c < 3) return -hat(strain + 3, i, j) * gain[c];
    if (r < 3) return hat(lam, i, j);
    if (c < 3) return hat(lam, i, j) - hat(strain, i, j) * gain[c];
    return hat(lam + 3, i, j) - hat(strain + 3, i, j) * gain[c];
}
// column c of alpha M - ad(e)^T M - adT(M e) of a body, from M's column and M e
FUNCTION void body_inertia_column(
    real* column, const real* mass, const real* velocity, const real* momentum, real alpha, int c) {
    real turned[6] = {ZERO, ZERO, ZERO, ZERO, ZERO, ZERO};
    subtract_ad_transposed(turned, velocity, mass);
    UNROLL for (int r = 0; r < 6; ++r) {
        column[r] = alpha * mass[r] + turned[r];
        const int i = r % 3, j = c % 3;
        if (r < 3 && c >= 3) column[r] -= hat(momentum, i, j);
        if (r >= 3 && c < 3) column[r] -= hat(momentum, i, j);
        if (r >= 3 && c >= 3) column[r] -= hat(momentum + 3, i, j);
    }
}

// What each interval brings to the matrix, on its own lane.
FUNCTION void prepare_intervals(Lane* lanes, Shared& shared, const Numbers& numbers) {
    EACH_LANE
        if (has_interval(lane)) {
            const int a = segment_of(lane);
            const real shift = ONE / INTERVAL_LENGTH[a], alpha = numbers.alpha;
            const real* relaxed = relaxation(shared, a);
            const real* stiff = stiffness(shared, a);
            real lam[6], gain[6], mass[6], momentum[6], diagonal[6], inverse[18], below[6], next[6];
            load<6>(lam, shared.rows[lane + 1] + 6);
            load<6>(below, shared.rows[lane] + 6);
            UNROLL for (int k = 0; k < 6; ++k) lam[k] = HALF * (lam[k] + below[k]);
            load<6>(next, shared.first[lane + 1]);
            load<6>(below, shared.first[lane]);
            UNROLL for (int k = 0; k < 6; ++k) {
                lam[k] += HALF * relaxed[k] * (below[k] + next[k]);
#if VARYING
                lam[k] -= own.mean_w[k];
#else
                lam[k] -= own.w[k];
#endif
                gain[k] = damping(shared, a)[k] * stiff[k];
                mass[k] = HALF * inertia_of(own, a, k);
                momentum[k] = mass[k] * own.velocity[k];
                diagonal[k] = alpha * mass[k];
#if IN_FLUID
                diagonal[k] += HALF * DRAG[6 * a + k];
#endif
            }
            inverse_of_shifted_ad(inverse, alpha, own.velocity);
            real frozen[32];
            UNROLL for (int k = 0; k < 18; ++k) frozen[k] = inverse[k];
            UNROLL for (int k = 0; k < 6; ++k) {
                frozen[18 + k] = own.strain[k];
                frozen[24 + k] = lam[k];
            }
            frozen[30] = frozen[31] = ZERO;
            store_wide<32>(shared.frozen[lane], frozen);
            real plus[18], minus[18];
            inverse_times_shifted_ad(plus, inverse, own.strain, shift);
            inverse_times_shifted_ad(minus, inverse, own.strain, -shift);
            UNROLL for (int r = 0; r < 6; ++r) {
                real q[6], upper[6], lower[6];
                const int i = r % 3;
                UNROLL for (int c = 0; c < 6; ++c) {
                    q[c] = stress_to_balance(own.strain, lam, gain, 2 * shift, r, c);
                    const int j = c % 3;
                    // half of alpha M - ad(e)^T M - adT(M e)
                    real inertia = ZERO;
                    if (r == c)
                        inertia = diagonal[r];
                    else if (r / 3 == c / 3)
                        inertia = hat(own.velocity + 3, i, j) * mass[c];
                    if (r / 3 == 1 && c / 3 == 1 && r != c) inertia -= hat(momentum + 3, i, j);
                    if (r < 3 && c >= 3 && i != j) inertia = -hat(momentum, i, j);
                    upper[c] = lower[c] = inertia;
                }
                UNROLL for (int c = 0; c < 3; ++c)
                    UNROLL for (int k = 0; k < 3; ++k) {
                        const bool left = r < 3 || k != i, right = r >= 3 || k != i;
                        const bool none = r >= 3 && k == (i == 0 ? 1 : 0);  // all still zero
                        if (left) {
                            upper[c] = none ? q[k] * plus[3 * k + c]
                                            : upper[c] + q[k] * plus[3 * k + c];
                            lower[c] = none ? q[k] * minus[3 * k + c]
                                            : lower[c] + q[k] * minus[3 * k + c];
                            upper[c + 3] += q[k] * plus[9 + 3 * k + c];
                            lower[c + 3] += q[k] * minus[9 + 3 * k + c];
                        }
                        if (right) {
                            upper[c + 3] += q[k + 3] * plus[3 * k + c];
                            lower[c + 3] += q[k + 3] * minus[3 * k + c];
                        }
                    }
                store<6>(shared.inverse[lane] + 6 * r, upper);
                store<6>(shared.carry[lane] + 6 * r, lower);
                const real twice = 2 * stiff[r];
                UNROLL for (int c = 0; c < 3; ++c) {
                    upper[c] = r < 3 ? twice * plus[3 * i + c] : ZERO;
                    lower[c] = r < 3 ? twice * minus[3 * i + c] : ZERO;
                    upper[c + 3] = twice * plus[(r < 3 ? 9 : 0) + 3 * i + c];
                    lower[c + 3] = twice * minus[(r < 3 ? 9 : 0) + 3 * i + c];
                }
                store<6>(shared.wrench_carry[lane] + 6 * r, upper);
                store<6>(shared.slope[lane] + 6 * r, lower);
            }
            if (lane == PAYLOAD_ROW) {
                const real half = HALF * numbers.payload;
                real carried[6] = {ZERO, ZERO, ZERO, ZERO, ZERO, ZERO};
                add_payload_momentum(carried, own.velocity, half);
                UNROLL for (int c = 0; c < 6; ++c) {
                    real unit[6], own_mass[6], column[6];
                    UNROLL for (int k = 0; k < 6; ++k) {
                        unit[k] = k == c ? ONE : ZERO;
                        own_mass[k] = ZERO;
                    }
                    add_payload_momentum(own_mass, unit, half);
                    body_inertia_column(column, own_mass, own.velocity, carried, alpha, c);
                    UNROLL for (int r = 0; r < 6; ++r) {
                        shared.inverse[lane][6 * r + c] += column[r];
                        shared.carry[lane][6 * r + c] += column[r];
                    }
                }
            }
        }
    DONE
}

// K of the last row of segment a, a column on each of six lanes
FUNCTION void slope_of_end(Lane* lanes, Shared& shared, const Numbers& numbers, int end) {
    const int a = segment_of(end);
    EACH_LANE
        if (lane < 6) {
            real column[6] = {ZERO, ZERO, ZERO, ZERO, ZERO, ZERO};
#if SEGMENTS > 1
            if (a < SEGMENTS - 1) {
                real beyond[6];
                UNROLL for (int r = 0; r < 6; ++r) {
#if FITTED
                    beyond[r] = ZERO;
                    UNROLL for (int k = 0; k < 6; ++k)
                        beyond[r] += shared.slope[end + 1][6 * r + k]
                            * ADJOINT[36 * a + 6 * k + lane];
#else
                    beyond[r] = shared.slope[end + 1][6 * r + lane];
#endif
                    beyond[r] *= damping(shared, a + 1)[r];
                }
                add_across(column, beyond, a);
            }
#endif
#if FITTED
            real mass[6], momentum[6], velocity[6], inertia[6];
            load<6>(velocity, shared.rows[end]);
            UNROLL for (int r = 0; r < 6; ++r) {
                mass[r] = BODY_MASS[36 * a + 6 * r + lane];
                momentum[r] = ZERO;
                UNROLL for (int k = 0; k < 6; ++k)
                    momentum[r] += BODY_MASS[36 * a + 6 * r + k] * velocity[k];
            }
            body_inertia_column(inertia, mass, velocity, momentum, numbers.alpha, lane);
            UNROLL for (int r = 0; r < 6; ++r) column[r] -= inertia[r];
#endif
            UNROLL for (int r = 0; r < 6; ++r)
                shared.slope[end][6 * r + lane] =
                    column[r] * per_damping(shared, a)[r];
        }
    DONE
}

// Eliminates the matrix at the stage's rows with frozen rates, from the tip to the base.
FUNCTION void linearise(Lane* lanes, Shared& shared, const Numbers& numbers) {
    prepare_intervals(lanes, shared, numbers);
    slope_of_end(lanes, shared, numbers, ROWS - 1);
    ONE_BY_ONE for (int i = ROWS - 2; i >= 0; --i) {
        if (ends(i)) {
            slope_of_end(lanes, shared, numbers, i);
            continue;
        }
        const int a = segment_of(i);
        const real twice = real(2) / INTERVAL_LENGTH[a];
        EACH_LANE
            forget(own);
            if (lane < 6) {
                real a_matrix[36], own_damping = ONE;
                load_wide<36>(a_matrix, shared.inverse[i]);
                UNROLL for (int r = 0; r < 6; ++r) {
                    real slope[6];
                    load<6>(slope, shared.slope[i + 1] + 6 * r);
                    const real damped = twice * damping(shared, a)[r];
                    if (r == lane) own_damping = damped;
                    UNROLL for (int c = 0; c < 6; ++c)
                        a_matrix[6 * r + c] -= damped * slope[c];
                }
                factorise(a_matrix);
                UNROLL for (int r = 0; r < 6; ++r) {
                    own.columns[0][r] = r == lane ? own_damping : ZERO;
                    own.columns[1][r] = shared.carry[i][6 * r + lane];
                }
                substitute(a_matrix, own.columns[0]);
                substitute(a_matrix, own.columns[1]);
                LOAD_AGAIN
                UNROLL for (int r = 0; r < 6; ++r) {
                    real row[6], slope[6], w = ZERO, k_below = shared.slope[i][6 * r + lane];
                    load<6>(row, shared.wrench_carry[i] + 6 * r);
                    load<6>(slope, shared.slope[i + 1] + 6 * r);
                    UNROLL for (int k = 0; k < 6; ++k) {
                        row[k] -= slope[k];
                        w += row[k] * own.columns[0][k];
                        k_below -= row[k] * own.columns[1][k];
                    }
                    own.columns[2][r] = w;
                    own.columns[3][r] = k_below;
                }
            }
        DONE
        EACH_LANE
            if (lane < 6)
                UNROLL for (int r = 0; r < 6; ++r) {
                    shared.inverse[i][6 * r + lane] = own.columns[0][r];
                    shared.carry[i][6 * r + lane] = own.columns[1][r];
                    shared.wrench_carry[i][6 * r + lane] = own.columns[2][r];
                    shared.slope[i][6 * r + lane] = own.columns[3][r];
                }
        DONE
    }
}

// Solves (alpha A - G) d = A r; the rates r stand in `rows`, and d goes to a stage's increments; at
// the last stage the state becomes that after the sub-step.
FUNCTION void solve(Lane* lanes, Shared& shared, const Numbers& numbers, int stage) {
    EACH_LANE
        forget(own);
        if (lane < ROWS) {
            const int a = segment_of(lane);
            real relaxed[6];
            load<6>(relaxed, relaxation(shared, a));
            if (!ends(lane)) {
                const real shift = ONE / INTERVAL_LENGTH[a];
                real row[6], mean[6], here[12], beyond[12], damped[6];
                real c[6], stiff[6], damped_by[6], undamped[6];
                load<6>(c, compliance(shared, a));
                load<6>(stiff, stiffness(shared, a));
                load<6>(damped_by, damping(shared, a));
                load<6>(undamped, per_damping(shared, a));
                load_wide<12>(here, shared.rows[lane]);
                load_wide<12>(beyond, shared.rows[lane + 1]);
                UNROLL for (int k = 0; k < 6; ++k) mean[k] = HALF * (here[k] + beyond[k]);
                multiply_inertia(row, mean, own, numbers, lane, a);
                UNROLL for (int k = 0; k < 6; ++k) {
                    mean[k] = HALF * (here[6 + k] + beyond[6 + k]);
                    damped[k] = -relaxed[k] * mean[k];
                    row[k] -= relaxed[k] * (beyond[6 + k] - here[6 + k]) * shift;
                    mean[k] *= c[k];
                }
                real frozen[32];
                load_wide<32>(frozen, shared.frozen[lane]);
                const real *inverse = frozen, *strain = frozen + 18, *lam = frozen + 24;
                subtract_ad_transposed(row, strain, damped);
                real y[6], known[6];
                UNROLL for (int r = 0; r < 3; ++r) {
                    y[r] = inverse[3 * r] * mean[0] + inverse[3 * r + 1] * mean[1]
                        + inverse[3 * r + 2] * mean[2];
                    y[r] += inverse[9 + 3 * r] * mean[3] + inverse[10 + 3 * r] * mean[4]
                        + inverse[11 + 3 * r] * mean[5];
                    y[r + 3] = inverse[3 * r] * mean[3] + inverse[3 * r + 1] * mean[4]
                        + inverse[3 * r + 2] * mean[5];
                }
                // row -= Q y; its products with ad(xi)^T and adT(lam) as cross products
                real gained[6];
                UNROLL for (int k = 0; k < 6; ++k) {
                    known[k] = 2 * stiff[k] * y[k];
                    gained[k] = damped_by[k] * stiff[k] * y[k];
                    row[k] -= 2 * shift * gained[k];
                }
                subtract_ad_transposed(row, strain, gained);
                subtract_cross(row, lam, y + 3);
                subtract_cross(row + 3, lam, y);
                subtract_cross(row + 3, lam + 3, y + 3);
                UNROLL for (int k = 0; k < 6; ++k)
                    own.balance[k] =
                        row[k] * (HALF * INTERVAL_LENGTH[a]) * undamped[k];
                add_product(known, shared.wrench_carry[lane], own.balance);
                store<6>(shared.first[lane], known);
            } else {
                real row[6], rate[12];
                load_wide<12>(rate, shared.rows[lane]);
                UNROLL for (int k = 0; k < 6; ++k) row[k] = relaxed[k] * rate[6 + k];
#if SEGMENTS > 1
                if (a < SEGMENTS - 1) {
                    real beyond[6];
                    load<6>(beyond, shared.rows[lane + 1] + 6);
                    UNROLL for (int k = 0; k < 6; ++k) beyond[k] *= -relaxation(shared, a + 1)[k];
                    add_across(row, beyond, a);
                }
#endif
#if FITTED
                UNROLL for (int r = 0; r < 6; ++r)
                    UNROLL for (int k = 0; k < 6; ++k)
                        row[r] += BODY_MASS[36 * a + 6 * r + k] * rate[k];
#endif
                UNROLL for (int k = 0; k < 6; ++k) row[k] *= per_damping(shared, a)[k];
                store<6>(shared.first[lane], row);
            }
        }
    DONE
    // towards the base: k of each row
    EACH_LANE
        own.link[(ROWS - 1) % 2] = lane < 6 ? shared.first[ROWS - 1][lane] : ZERO;
    PASSED
    UNROLL for (int i = ROWS - 2; i >= 0; --i) {
        const int a = segment_of(i);
        EACH_LANE
            real beyond[6];
            UNROLL for (int k = 0; k < 6; ++k) beyond[k] = LINK_OF(k, (i + 1) % 2);
            if (lane < 6) {
                real known = shared.first[i][lane];
                if (ends(i)) {
                    real sum = ZERO;
                    UNROLL for (int k = 0; k < 6; ++k) {
                        const real damped = damping(shared, a + 1)[k];
#if FITTED
                        sum += ADJOINT[36 * a + 6 * k + lane] * damped * beyond[k];
#else
                        sum += k == lane ? damped * beyond[k] : ZERO;
#endif
                    }
                    known += sum * per_damping(shared, a)[lane];
                } else {
                    known += dot6(shared.wrench_carry[i] + 6 * lane, beyond)
                        - own.link[(i + 1) % 2];
                }
                shared.first[i][lane] = own.link[i % 2] = known;
            }
        PASSED
    }
    BARRIER
    EACH_LANE
        if (has_interval(lane)) {
            real y[6], g[6] = {ZERO, ZERO, ZERO, ZERO, ZERO, ZERO};
            load<6>(y, shared.first[lane + 1]);
            UNROLL for (int k = 0; k < 6; ++k) y[k] += own.balance[k];
            add_product(g, shared.inverse[lane], y);
            store<6>(shared.second[lane], g);
        }
        own.link[0] = ZERO;
        if (lane < 6) shared.third[0][lane] = ZERO;
    DONE
    // towards the tip: d_e of each row
    UNROLL for (int i = 0; i < ROWS - 1; ++i) {
        EACH_LANE
            real d_e[6];
            UNROLL for (int k = 0; k < 6; ++k) d_e[k] = LINK_OF(k, i % 2);
            if (lane < 6) {
                real next = own.link[i % 2];
                if (!ends(i)) {
                    next = shared.second[i][lane] - dot6(shared.carry[i] + 6 * lane, d_e);
                } else if (FITTED) {
#if FITTED
                    next = ZERO;
                    UNROLL for (int k = 0; k < 6; ++k)
                        next += ADJOINT[36 * segment_of(i) + 6 * lane + k] * d_e[k];
#endif
                }
                shared.third[i + 1][lane] = own.link[(i + 1) % 2] = next;
            }
        PASSED
    }
    BARRIER
    EACH_LANE
        if (lane < ROWS) {
            real d[12];
            load<6>(d, shared.third[lane]);
            load<6>(d + 6, shared.first[lane]);
            add_product(d + 6, shared.slope[lane], d);
            if (stage < 3) {
                store_wide<12>(shared.increments[stage][lane], d);
            } else {
                real row[12], u[12], off[12];
                load_wide<12>(row, shared.state[lane]);
                UNROLL for (int k = 0; k < 12; ++k) {
                    row[k] += INCREMENT[3] * d[k];
                    off[k] = ERROR[3] * d[k];
                }
                UNROLL for (int j = 0; j < 3; ++j) {
                    load_wide<12>(u, shared.increments[j][lane]);
                    UNROLL for (int k = 0; k < 12; ++k) {
                        row[k] += INCREMENT[j] * u[k];
                        off[k] += ERROR[j] * u[k];
                    }
                }
                store_wide<12>(shared.state[lane], row);
                const real* c = compliance(shared, segment_of(lane));
                UNROLL for (int k = 0; k < 6; ++k) shared.first[lane][k] = c[k] * off[6 + k];
                const real step = INTERVAL_LENGTH[segment_of(lane)] / SUBINTERVALS;
                real turn = ZERO;
                UNROLL for (int k = 3; k < 6; ++k) turn += c[k] * c[k] * row[6 + k] * row[6 + k];
                shared.third[lane][0] = off[0] * off[0] + off[1] * off[1] + off[2] * off[2];
                shared.third[lane][1] = -c[2] * row[8];
                shared.third[lane][2] = step * step * turn;
            }
        }
    DONE
}

// -- time: `rosenbrock` ---------------------------------------------------------------------------

// The square of the estimated error of what was solved for last, from each row's errors of strains
// and of its velocity, which lasts for a time [s]. Where a row is pressed to nothing or turns too
// far in a sub-interval, it is -infinite if the error can be believed, so that finer steps would
// not help, and else NaN.
FUNCTION real squared_error(const Shared& shared, real lasting) {
    real moved[6] = {ZERO, ZERO, ZERO, ZERO, ZERO, ZERO};
    real largest = ZERO;
    bool inside = true;
    ONE_BY_ONE for (int i = 0; i < ROWS; ++i) {
        const int a = segment_of(i);
        const real half = HALF * INTERVAL_LENGTH[a];
        const real* off = shared.first[i];
        const int intervals = (i > FIRST_ROW[a]) + !ends(i);
        ONE_BY_ONE for (int each = 0; each < intervals; ++each) {
            moved[0] += half * (off[0] + moved[4]);
            moved[1] += half * (off[1] - moved[3]);
            moved[2] += half * off[2];
            UNROLL for (int k = 3; k < 6; ++k) moved[k] += half * off[k];
        }
        const real square = moved[0] * moved[0] + moved[1] * moved[1] + moved[2] * moved[2]
            + lasting * lasting * shared.third[i][0];
        if (square > largest) largest = square;
        inside = inside && shared.third[i][1] < ONE && shared.third[i][2] < SQUARED_TURN;
    }
    const real error = largest / (LENGTH * LENGTH) + real(0.25) * moved[5] * moved[5];
    return inside ? error : error < SQUARED_BELIEVED ? real(-INFINITE) : real(NAN_OF_IO);
}

// Advances the rows over h [s] under constant wrenches, `anew` after a linearisation.
FUNCTION void advance(Lane* lanes, Shared& shared, const Numbers& numbers, real h, bool anew) {
    const real per_step = ONE / h;
    ONE_BY_ONE for (int stage = 0; stage < 4; ++stage) {
        EACH_LANE
            if (lane < ROWS) {
                real row[12], u[12];
                load_wide<12>(row, shared.state[lane]);
                ONE_BY_ONE for (int j = 0; j < stage; ++j) {
                    load_wide<12>(u, shared.increments[j][lane]);
                    UNROLL for (int k = 0; k < 12; ++k) row[k] += STAGE_POINT[4 * stage + j] * u[k];
                }
                store_wide<12>(shared.rows[lane], row);
            }
        DONE
        derivative(lanes, shared, numbers);
        if (stage == 0 && anew) linearise(lanes, shared, numbers);
        EACH_LANE
            if (lane < ROWS) {
                real rate[12], u[12];
                load<6>(rate, shared.third[lane]);
                load<6>(rate + 6, shared.first[lane]);
                ONE_BY_ONE for (int j = 0; j < stage; ++j) {
                    load_wide<12>(u, shared.increments[j][lane]);
                    const real weight = STAGE_COUPLING[4 * stage + j] * per_step;
                    UNROLL for (int k = 0; k < 12; ++k) rate[k] += weight * u[k];
                }
                store_wide<12>(shared.rows[lane], rate);
            }
        DONE
        solve(lanes, shared, numbers, stage);
    }
}

// A piece of a step in equal sub-steps; each holds the wrench in its middle. Returns the sum of
// their squared errors.
FUNCTION real piece(
    Lane* lanes, Shared& shared, const Numbers& numbers, real length, int substeps, bool fresh) {
    const real h = length / real(substeps);
    const real lasting = real(substeps) < LASTING ? length : LASTING * h;
    real error = ZERO;
    ONE_BY_ONE for (int substep = 0; substep < substeps; ++substep) {
        const real fraction = (real(substep) + HALF) / real(substeps);
        EACH_LANE
            const real* wrench = shared.actuation[lane < ROWS ? lane : ROWS - 1];
            UNROLL for (int k = 0; k < 6; ++k) own.w[k] = wrench[k] + fraction * wrench[6 + k];
#if TENDONS
            UNROLL for (int k = 0; k < 6; ++k) own.pull[k] = own.w[k];
            UNROLL for (int tendon = 0; tendon < TENDONS; ++tendon)
                own.tension[tendon] =
                    own.tension_begin[tendon] + fraction * own.tension_change[tendon];
#endif
            if (lane == 0) {
                real base[6], s[6], rest[2];
                load<6>(s, shared.state[0] + 6);
                UNROLL for (int k = 0; k < 6; ++k) base[k] = own.w[k];
                if (STIFFENS) {
                    unresisted(rest, s, compliance(shared, 0), numbers);
                    base[3] += rest[0];
                    base[4] += rest[1];
                }
#if TENDONS
                add_tendons(base, s, compliance(shared, 0), own, 0);
#endif
                UNROLL for (int k = 0; k < 6; ++k)
                    shared.base[k] = (shared.base[k] + base[k]) * shared.decay[k] - base[k];
            }
        DONE
        advance(lanes, shared, numbers, h, substep == 0 || fresh);
        error += squared_error(shared, lasting);
        BARRIER
    }
    return error;
}

#if FITTED
// N of all rows, from the tip to the base, a column on each of six lanes: `kernel`
FUNCTION void effective_masses(Lane* lanes, Shared& shared) {
    ONE_BY_ONE for (int i = ROWS - 1; i >= 0; --i) {
        const int a = segment_of(i);
        EACH_LANE
            if (lane < 6) {
                real column[6];
                if (ends(i)) {
                    UNROLL for (int r = 0; r < 6; ++r) column[r] = BODY_MASS[36 * a + 6 * r + lane];
                    if (a < SEGMENTS - 1) {
                        real beyond[6];
                        UNROLL for (int r = 0; r < 6; ++r) {
                            beyond[r] = ZERO;
                            UNROLL for (int k = 0; k < 6; ++k)
                                beyond[r] += shared.effective_mass[i + 1][6 * r + k]
                                    * ADJOINT[36 * a + 6 * k + lane];
                        }
                        add_across(column, beyond, a);
                    }
                } else {
                    // N- = N+ S^-1 M/2 with S = M/2 + (2/h) N+
                    real matrix[36], y[6];
                    UNROLL for (int k = 0; k < 36; ++k)
                        matrix[k] = real(2) / INTERVAL_LENGTH[a] * shared.effective_mass[i + 1][k];
                    UNROLL for (int k = 0; k < 6; ++k) {
                        matrix[7 * k] += HALF * inertia_at(shared, i, k);
                        y[k] = k == lane ? HALF * inertia_at(shared, i, k) : ZERO;
                    }
                    factorise(matrix);
                    substitute(matrix, y);
                    UNROLL for (int r = 0; r < 6; ++r) {
                        column[r] = ZERO;
                        UNROLL for (int k = 0; k < 6; ++k)
                            column[r] += shared.effective_mass[i + 1][6 * r + k] * y[k];
                    }
                }
                UNROLL for (int r = 0; r < 6; ++r)
                    shared.effective_mass[i][6 * r + lane] = column[r];
            }
        DONE
    }
}
#endif

// -- the tip's pose -------------------------------------------------------------------------------

// Pose (3, 4) of the tip cap's outer face in the base frame: `packing.tip_pose`.
template <class IO> FUNCTION void tip_pose(Lane* lanes, Shared& shared, IO* pose, bool writes) {
    EACH_LANE
        if (lane < ROWS) {
            const int a = segment_of(lane);
            real turn[12];
            UNROLL for (int k = 0; k < 12; ++k) turn[k] = k < 9 && k % 4 == 0 ? ONE : ZERO;
            if (!ends(lane)) {
                const real* c = compliance(shared, a);
                const real length = INTERVAL_LENGTH[a] / SUBINTERVALS;
                real s[6], s_next[6];
                load<6>(s, shared.state[lane] + 6);
                load<6>(s_next, shared.state[lane + 1] + 6);
                ONE_BY_ONE for (int j = 0; j < SUBINTERVALS; ++j) {
                    const real fraction = (j + STRAIN_POINT) / SUBINTERVALS;
                    real move[6], part[9], next[9], a_cross[3] = {ZERO, ZERO, ZERO};
                    UNROLL for (int k = 0; k < 6; ++k) {
                        real strain = c[k] * (s[k] + fraction * (s_next[k] - s[k]));
                        if (k == 2) strain += ONE;
                        move[k] = strain * length;
                    }
                    const real* u = move + 3;
                    const real t = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
                    const real cosine = cosine_of(t), cubic = cubic_of(t);
                    add_cross(a_cross, u, move);
                    if (!(t < SQUARED_TURN)) move[0] = move[1] = move[2] = real(NAN_OF_IO);
                    real b_cross[3] = {ZERO, ZERO, ZERO};
                    add_cross(b_cross, u, a_cross);
                    UNROLL for (int k = 0; k < 3; ++k)
                        move[k] += cosine * a_cross[k] + cubic * b_cross[k];
                    UNROLL for (int r = 0; r < 3; ++r)
                        turn[9 + r] += turn[3 * r] * move[0] + turn[3 * r + 1] * move[1]
                            + turn[3 * r + 2] * move[2];
                    turn_back(part, u);
                    UNROLL for (int r = 0; r < 3; ++r)
                        UNROLL for (int k = 0; k < 3; ++k)
                            next[3 * r + k] = turn[3 * r] * part[3 * k]
                                + turn[3 * r + 1] * part[3 * k + 1]
                                + turn[3 * r + 2] * part[3 * k + 2];
                    UNROLL for (int k = 0; k < 9; ++k) turn[k] = next[k];
                }
            }
#if FITTED
            else if (a < SEGMENTS - 1) {
                UNROLL for (int k = 0; k < 9; ++k)
                    turn[k] = ADJOINT[36 * a + 6 * (k % 3) + k / 3];
                UNROLL for (int k = 0; k < 3; ++k) turn[9 + k] = TRANSLATION[3 * a + k];
            }
#endif
            if (lane < ROWS - 1) store_wide<12>(shared.turn[lane], turn);
        }
    DONE
    EACH_LANE
        own.sound = true;
        if (lane < 3) {
            real row[3], position = lane == 2 ? BASE_HEIGHT : ZERO;
            UNROLL for (int k = 0; k < 3; ++k) row[k] = k == lane ? ONE : ZERO;
            UNROLL for (int i = 0; i < ROWS - 1; ++i) {
                real turn[12], next[3];
                load_wide<12>(turn, shared.turn[i]);
                position += row[0] * turn[9] + row[1] * turn[10] + row[2] * turn[11];
                UNROLL for (int k = 0; k < 3; ++k)
                    next[k] = row[0] * turn[k] + row[1] * turn[3 + k] + row[2] * turn[6 + k];
                UNROLL for (int k = 0; k < 3; ++k) row[k] = next[k];
            }
            position += TIP_CAP_LENGTH * row[2];
            own.sound = finite(IO(position));
            UNROLL for (int k = 0; k < 3; ++k) own.sound = own.sound && finite(IO(row[k]));
            if (writes) {
                UNROLL for (int k = 0; k < 3; ++k) pose[4 * lane + k] = IO(row[k]);
                pose[4 * lane + 3] = IO(position);
            }
        }
    DONE
}

// -- a candidate ---------------------------------------------------------------------------------

// What all candidates of a call share.
struct Call {
    int batch, steps;
    int one_state, one_parameters;  // 1 where one row serves all candidates
    int pieces;                     // of a step, each with a linearisation of its own
    int fresh;                      // 1 to linearise in each sub-step
    int tips;                       // 1 to write poses (3, 4), 0 to write states
    int again;                      // 1 to do only candidates whose last row is not finite
    int substeps;                   // of a piece
    int doublings;                  // of them, at most, for a step that does not hold
    double length;                  // of a piece [s]
    double largest_error;           // of a piece, squared: `Run.limits`
    float quick_length, quick_largest_error;  // the same
};
// rounded by the caller: a kernel in single precision has no instruction in double
#if DOUBLE
#define LENGTH_OF(call) call.length
#define LARGEST_ERROR_OF(call) call.largest_error
#else
#define LENGTH_OF(call) call.quick_length
#define LARGEST_ERROR_OF(call) call.quick_largest_error
#endif

// Candidates of a warp go together, so a step that does not hold for one of them is done again by
// all. Before that, whoever is to do it again goes back to where the step began, and the others
// keep what they have and get it back afterwards.
enum Keeping { NOTHING, KEEP, GO_BACK };
FUNCTION void exchange(Lane* lanes, Shared& shared, Keeping what) {
    EACH_LANE
        const bool back = what == GO_BACK;
        if (what != NOTHING && lane < ROWS) {
            real row[12];
            load_wide<12>(row, back ? shared.kept_state[lane] : shared.state[lane]);
            store_wide<12>(back ? shared.state[lane] : shared.kept_state[lane], row);
        }
        if (what != NOTHING && lane < 6) {
            const real base = back ? shared.kept_base[lane] : shared.base[lane];
            (back ? shared.base : shared.kept_base)[lane] = base;
        }
    DONE
}

// Advances a candidate over all steps, each as fine as it needs, and writes what follows from it
// after each of them, where it is to be written; returns whether all steps hold and the last of it
// is finite.
template <class IO>
FUNCTION bool follow(
    Lane* lanes, Shared& shared, const IO* states, const IO* inputs, const IO* parameters, IO* out,
    const Call& call, int candidate, bool writes) {
    Numbers& numbers = shared.numbers;
    const real length = LENGTH_OF(call), largest_error = LARGEST_ERROR_OF(call);
    bool holds = true;
    int prepared = 0;  // for so many sub-steps
    load_state(lanes, shared, states + (call.one_state ? 0 : candidate * STATES));
    ONE_BY_ONE for (int step = 0; step < call.steps; ++step) {
        bool again = holds && writes;  // this step is to be done, by this candidate
        exchange(lanes, shared, KEEP);
        ONE_BY_ONE for (int doubling = 0; doubling <= call.doublings; ++doubling) {
            const int substeps = call.substeps << doubling;
            if (prepared != substeps) {
                set_section(
                    lanes, shared, numbers,
                    parameters + (call.one_parameters ? 0 : candidate * PARAMETERS),
                    length / real(substeps));
#if FITTED
                if (!prepared) effective_masses(lanes, shared);
#endif
                prepared = substeps;
            }
            bool hopeless = false, sound = true;
            ONE_BY_ONE for (int part = 0; part < call.pieces; ++part) {
                const real begins = real(part) / real(call.pieces);
                const real ends_at = real(part + 1) / real(call.pieces);
                const long long row = static_cast<long long>(candidate) * (call.steps + 1) + step;
                const IO* now = inputs + row * INPUTS;
                set_actuation(lanes, shared, now, now + INPUTS, begins, ends_at);
                const real error = piece(
                    lanes, shared, numbers, length, substeps, call.fresh || doubling > 0);
                sound = sound && error >= ZERO && error < largest_error;
                hopeless = hopeless || error < ZERO;
            }
            if (doubling > 0) exchange(lanes, shared, again ? NOTHING : GO_BACK);
            if (again && (sound || hopeless || doubling == call.doublings)) {
                again = false;
                holds = sound;
            }
            if (!ANY_OF_WARP(again)) break;
            exchange(lanes, shared, again ? GO_BACK : KEEP);
        }
        const int width = call.tips ? 12 : STATES;
        IO* to = out + (static_cast<long long>(candidate) * call.steps + step) * width;
        if (call.tips)
            tip_pose(lanes, shared, to, writes);
        else
            store_state(lanes, shared, to, writes);
        if (!ANY_OF_WARP(holds && writes)) return false;
    }
    EACH_LANE
        shared.sound[lane] = own.sound;
    DONE
    bool sound = holds;
    for (int lane = 0; lane < LANES; ++lane) sound = sound && shared.sound[lane];
    return sound;
}

// A call's candidate; NaN where a step does not hold, or the last of it is not finite.
template <class IO>
FUNCTION void attempt(
    Lane* lanes, Shared& shared, const IO* states, const IO* inputs, const IO* parameters, IO* out,
    const Call& call, int number) {
    const bool exists = number < call.batch;
    const int candidate = exists ? number : call.batch - 1;
    const int width = call.tips ? 12 : STATES;
    const long long first = static_cast<long long>(candidate) * call.steps * width;
    bool wanted = exists && !(call.again && finite(out[first + (call.steps - 1) * width]));
    bool tried = wanted;
    if (call.again) {  // no finer step helps what is not finite when it is given
        EACH_LANE
            const IO* given = states + (call.one_state ? 0 : candidate * STATES);
            bool sound = true;
            for (int k = lane; k < STATES; k += LANES) sound = sound && finite(given[k]);
            given = parameters + (call.one_parameters ? 0 : candidate * PARAMETERS);
            for (int k = lane; k < PARAMETERS; k += LANES) sound = sound && finite(given[k]);
            const int levels = (call.steps + 1) * INPUTS;
            given = inputs + static_cast<long long>(candidate) * levels;
            for (int k = lane; k < levels; k += LANES) sound = sound && finite(given[k]);
            shared.sound[lane] = sound;
        DONE
        for (int lane = 0; lane < LANES; ++lane) tried = tried && shared.sound[lane];
        BARRIER
    }
    if (ANY_OF_WARP(tried))
        if (follow(lanes, shared, states, inputs, parameters, out, call, candidate, tried) && tried)
            wanted = false;
    EACH_LANE
        if (wanted)
            for (int k = lane; k < call.steps * width; k += LANES) out[first + k] = IO(NAN_OF_IO);
    DONE
}

template <class IO>
FUNCTION void pose_of(
    Lane* lanes, Shared& shared, const IO* states, const IO* parameters, IO* out, const Call& call,
    int number) {
    const int candidate = number < call.batch ? number : call.batch - 1;
    set_section(
        lanes, shared, shared.numbers,
        parameters + (call.one_parameters ? 0 : candidate * PARAMETERS),
        ONE);  // the sub-step plays no part
    load_state(lanes, shared, states + (call.one_state ? 0 : candidate * STATES));
    tip_pose(lanes, shared, out + 12 * candidate, number < call.batch);
}

#ifdef __CUDACC__
extern __shared__ __align__(16) unsigned char memory[];
// candidates of a warp begin in different banks
constexpr int STRIDE = (sizeof(Shared) + 127) / 128 * 128 + 32;
extern "C" __device__ const int candidate_bytes = STRIDE;

// blocks that a multiprocessor is to have registers for: others have less shared memory than sm_90
#if __CUDA_ARCH__ == 900
#define RESIDENT BLOCKS
#else
#define RESIDENT (BLOCKS / 2)
#endif

#define KERNELS(IO) \
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) rollout_##IO( \
    const IO* states, const IO* inputs, const IO* parameters, IO* out, BY_VALUE Call call) { \
    const int group = threadIdx.x / LANES; \
    Lane lanes[1]; \
    attempt(lanes, *reinterpret_cast<Shared*>(memory + STRIDE * group), states, inputs, \
        parameters, out, call, blockIdx.x * (THREADS / LANES) + group); \
} \
extern "C" __global__ void __launch_bounds__(THREADS) tips_##IO( \
    const IO* states, const IO* parameters, IO* out, BY_VALUE Call call) { \
    const int group = threadIdx.x / LANES; \
    Lane lanes[1]; \
    pose_of(lanes, *reinterpret_cast<Shared*>(memory + STRIDE * group), states, parameters, out, \
        call, blockIdx.x * (THREADS / LANES) + group); \
}
#else
#define KERNELS(IO) \
extern "C" void rollout_##IO( \
    const IO* states, const IO* inputs, const IO* parameters, IO* out, BY_VALUE Call call) { \
    static Lane lanes[LANES]; \
    static Shared shared; \
    for (int candidate = 0; candidate < call.batch; ++candidate) \
        attempt(lanes, shared, states, inputs, parameters, out, call, candidate); \
} \
extern "C" void tips_##IO(const IO* states, const IO* parameters, IO* out, BY_VALUE Call call) { \
    static Lane lanes[LANES]; \
    static Shared shared; \
    for (int candidate = 0; candidate < call.batch; ++candidate) \
        pose_of(lanes, shared, states, parameters, out, call, candidate); \
}
#endif

KERNELS(float)
#if DOUBLE
KERNELS(double)
#endif
