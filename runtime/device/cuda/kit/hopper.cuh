// hopper.cuh: instructions of Hopper (sm_90a) for kernels that define MTC_HOPPER before they
// include mtc.cuh: barriers in shared memory, the bulk copy engine with its maps, and
// matrix products by groups of four warps. Tiles in shared memory are columns of 64 bf16 wide,
// 128 bytes a row, swizzled; one and the same tile serves as a K-major and as an MN-major operand.
#if defined(MTC_HOPPER) && !defined(MTC_F32) && !defined(MTC_EMU) && defined(__CUDA_ARCH_FEAT_SM90_ALL)

extern __shared__ __align__(1024) unsigned char smem[];
__device__ __forceinline__ u32 smem_at(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// ---- barriers in shared memory
__device__ __forceinline__ void bar_init(u32 bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void bar_fence() { asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async;" ::: "memory"); }
__device__ __forceinline__ void bar_arrive(u32 bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void bar_expect(u32 bar, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_wait(u32 bar, u32 phase) {
    asm volatile(
        "{\n\t.reg .pred p;\n\tW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t@p bra D;\n\tbra W;\n\tD:\n\t}" ::"r"(bar),
        "r"(phase)
        : "memory");
}
// Named barriers, among some of the warps.
__device__ __forceinline__ void named_sync(int id, int n) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
__device__ __forceinline__ void named_arrive(int id, int n) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory"); }

template <int N> __device__ __forceinline__ void fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> __device__ __forceinline__ void more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

// shared2 loads two floats, where it stands: loads that the compiler gathers ahead cost registers.
__device__ __forceinline__ float2 shared2(u32 at) {
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at) : "memory");
    return v;
}

// ---- the copy engine

// Map describes a tensor [B][T][heads][HD] to the copy engine, which copies 64 rows of one head,
// 64 elements wide. make_map builds it with a warp; room is 128 bytes of shared memory.
struct alignas(128) Map {
    u32 w[32];
};
__device__ __forceinline__ void make_map(Map* to, u32 room, const bf16* p, i64 hd, i64 heads, i64 t, i64 b) {
    const int lane = threadIdx.x % 32;
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(room + 4 * lane), "r"(0) : "memory");
    __syncwarp();
    if (lane == 0) {
#define SET(field, bits, val) asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b" #bits " [%0], %1;" ::"r"(room), val : "memory")
        SET("global_address", 64, "l"(p));
        SET("rank", 32, "r"(3));
#undef SET
#define SET(field, bits, i, val) asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b" #bits " [%0], " #i ", %1;" ::"r"(room), val : "memory")
        SET("box_dim", 32, 0, "r"(64));
        SET("box_dim", 32, 1, "r"(1));
        SET("box_dim", 32, 2, "r"(64));
        SET("box_dim", 32, 3, "r"(1));
        SET("global_dim", 32, 0, "r"((u32)hd));
        SET("global_dim", 32, 1, "r"((u32)heads));
        SET("global_dim", 32, 2, "r"((u32)t));
        SET("global_dim", 32, 3, "r"((u32)b));
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 5)
        const int shift = 0;
#else
        const int shift = 4;  // older compilers want it without the four lowest bits
#endif
        SET("global_stride", 64, 0, "l"((u64)(hd * 2) >> shift));
        SET("global_stride", 64, 1, "l"((u64)(heads * hd * 2) >> shift));
        SET("global_stride", 64, 2, "l"((u64)(t * heads * hd * 2) >> shift));
        SET("element_stride", 32, 0, "r"(1));
        SET("element_stride", 32, 1, "r"(1));
        SET("element_stride", 32, 2, "r"(1));
        SET("element_stride", 32, 3, "r"(1));
#undef SET
        asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 10;" ::"r"(room) : "memory");  // bf16
        asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" ::"r"(room) : "memory");
        asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" ::"r"(room) : "memory");  // 128 bytes
        asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" ::"r"(room) : "memory");
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(to), "r"(room)
                 : "memory");
    __syncwarp();
}
__device__ __forceinline__ void acquire_map(const Map* m) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(m) : "memory");
}
// copy_box brings the box at (col, head, row, batch), 64 rows of 128 bytes, swizzled.
__device__ __forceinline__ void copy_box(u32 to, const Map* m, int col, int head, int row, int b, u32 bar) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
                 "l"(m), "r"(col), "r"(head), "r"(row), "r"(b), "r"(bar)
                 : "memory");
}
// copy_bulk brings bytes that lie in a row, a multiple of 16.
__device__ __forceinline__ void copy_bulk(u32 to, const void* from, u32 bytes, u32 bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(bar)
                 : "memory");
}

// ---- matrix products, in the background: d = (add ? d : 0) + a b for 64 rows. TB: b is
// MN-major, that is, stored with the result's columns side by side; TA: a is, with its rows.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// keep stops the compiler from moving reads and writes of d over the waits around it.
template <int N> __device__ __forceinline__ void keep(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}
template <int N> __device__ __forceinline__ void keep(u32 (&d)[N][4]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+r"(d[i][0]), "+r"(d[i][1]), "+r"(d[i][2]), "+r"(d[i][3])::"memory");
}
template <int TB, int TA = 0> __device__ __forceinline__ void wgmma(float (&d)[32], u64 a, u64 b, int add) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, %32, %33, p, 1, 1, %36, %35;}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b), "r"(add), "n"(TB), "n"(TA));
}
template <int TB> __device__ __forceinline__ void wgmma(float (&d)[32], const u32 (&a)[4], u64 b, int add) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %37, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, {%32, %33, %34, %35}, %36, p, 1, 1, %38;}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(TB));
}
template <int TB, int TA = 0> __device__ __forceinline__ void wgmma(float (&d)[64], u64 a, u64 b, int add) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, p, 1, 1, %68, %67;}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b), "r"(add), "n"(TB), "n"(TA));
}
template <int TB> __device__ __forceinline__ void wgmma(float (&d)[64], const u32 (&a)[4], u64 b, int add) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, {%64, %65, %66, %67}, %68, p, 1, 1, %70;}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(TB));
}
template <int TB, int TA = 0> __device__ __forceinline__ void wgmma(float (&d)[128], u64 a, u64 b, int add) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
        "}, %128, %129, p, 1, 1, %132, %131;}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
          "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
          "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
          "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
          "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
          "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
          "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
          "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
          "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
        : "l"(a), "l"(b), "r"(add), "n"(TB), "n"(TA));
}
__device__ __forceinline__ int next_number(int* counter) { return atomicAdd(counter, 1); }
// fence_async lets the copy engine and the tensor cores see what this thread stored to shared memory.
__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#endif

#if defined(MTC_HOPPER) && !defined(MTC_F32) && (defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(MTC_EMU))

// Descriptors of operands in shared memory. k_major: rows are the operand's rows (or the
// result's columns) and the 64 elements of a row are summed over; 8 rows are 1,024 bytes.
// mn_major: the tile's ROWS rows are summed over and its elements are the result's rows or columns;
// 64 of them to the next are ROWS * 128 bytes.
__device__ __forceinline__ u64 k_major(u32 at) { return (u64)(at >> 4) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62; }
template <int ROWS> __device__ __forceinline__ u64 mn_major(u32 at) {
    return (u64)(at >> 4) | (u64)(ROWS * 8) << 16 | (u64)64 << 32 | (u64)1 << 62;
}

// Ring walks over slots that are filled and emptied in order.
template <int SLOTS> struct Ring {
    int slot = 0;
    u32 phase = 0;
    __device__ __forceinline__ void next() {
        if (++slot == SLOTS) slot = 0, phase ^= 1;
    }
};

// leave says that this warp is done with what a barrier guards.
__device__ __forceinline__ void leave(u32 bar) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) bar_arrive(bar);
}

// Tiles hands out numbers of work to the block: give is called by the copying thread, take by
// the computing warps; -1 ends. It has BYTES of shared memory at smem + at: two barriers that
// say a number is there, two that it was read, and the numbers.
struct Tiles {
    static constexpr u32 BYTES = 40;
    u32 base, at;
    int turn = 0;
    __device__ Tiles(u32 base, u32 at) : base(base + at), at(at) {}
    // init makes the barriers, for that many computing warps; one thread calls it.
    static __device__ __forceinline__ void init(u32 base, u32 at, int warps) {
        for (int i = 0; i < 2; i++) bar_init(base + at + 8 * i, 1), bar_init(base + at + 16 + 8 * i, warps);
    }
    __device__ __forceinline__ void give(int tile) {
        bar_wait(base + 16 + 8 * (turn & 1), (turn >> 1 & 1) ^ 1);
        *(volatile int*)(smem + at + 32 + 4 * (turn & 1)) = tile;
        bar_arrive(base + 8 * (turn & 1));
        turn++;
    }
    __device__ __forceinline__ int take() {
        bar_wait(base + 8 * (turn & 1), turn >> 1 & 1);
        const int tile = *(volatile int*)(smem + at + 32 + 4 * (turn & 1));
        leave(base + 16 + 8 * (turn & 1));
        turn++;
        return tile;
    }
};
#endif
