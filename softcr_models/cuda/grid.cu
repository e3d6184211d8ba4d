// What lets one text be compiled by CUDA's compiler and by a host's: threads that share nothing are
// turns of a loop on a host, and a block that works together is one loop after the other.

#ifdef __CUDACC__
#define FUNCTION __device__ __forceinline__
#define TABLE static __device__ constexpr
#define KERNEL extern "C" __global__ void
#define BY_VALUE const __grid_constant__
// a number for each thread of the grid
#define EACH(i, count) \
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (count); i += gridDim.x * blockDim.x)
// a number for each thread of the block; SYNC ends what the others wait for
#define EACH_OF_BLOCK(i, count) for (int i = threadIdx.x; i < (count); i += blockDim.x)
#define FIRST_OF_BLOCK if (threadIdx.x == 0)
#define SYNC __syncthreads();
// the sum over a warp, of which a grid's threads do the elements of one item
#define EACH_WARP(i, count) \
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < (count); \
         i += gridDim.x * blockDim.x / 32)
#define EACH_OF_WARP(k, count) for (int k = threadIdx.x % 32; k < (count); k += 32)
#define FIRST_OF_WARP if (threadIdx.x % 32 == 0)
FUNCTION float sum_of_warp(float part) {
    for (int apart = 16; apart; apart /= 2) part += __shfl_xor_sync(0xffffffffu, part, apart);
    return part;
}
#define INFINITE __int_as_float(0x7f800000)
#else
#include <cmath>
#define FUNCTION static inline
#define TABLE static constexpr
#define KERNEL extern "C" void
#define BY_VALUE
#define EACH(i, count) for (int i = 0; i < (count); ++i)
#define EACH_OF_BLOCK(i, count) EACH(i, count)
#define FIRST_OF_BLOCK
#define SYNC
#define EACH_WARP(i, count) EACH(i, count)
#define EACH_OF_WARP(k, count) EACH(k, count)
#define FIRST_OF_WARP
static inline float sum_of_warp(float part) { return part; }
#define INFINITE INFINITY
#endif
