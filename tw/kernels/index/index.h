#pragma once

#include <span>

#include "tw/kernels/entry.h"

namespace tw::kernels {

/// Rows of a tile, and columns.
struct IndexTiling {
  int64_t rows = 8;
  int64_t cols = 512;
};

/// Y[N, D] = rows ids[N] of table[V, D], any strides; ids are i32 or i64. An id outside [0, V), so
/// a negative one too, gives a row of zeros. Exact.
Program embedding(DType t, DType ids, const IndexTiling& tiling = {});

/// Y = base, then Y[ids[i], :] += X[i, :] for i = 0, 1, ..: base, Y [V, D], ids [N], X [N, D], f32.
/// An id outside [0, V) adds nothing. An instance owns columns and walks the rows in their order,
/// so sums are bitwise those of plain loops, whatever the threads. Error bound
/// check::bound(reduction) with terms = N + 1.
Program index_add(DType ids, const IndexTiling& tiling = {});
/// The same in one tensor: Y is inout and there is no base.
Program index_add_in_place(DType ids, const IndexTiling& tiling = {});

/// index_add where an instance owns rows and columns of Y: it looks at all ids, so that many do it
/// at a time, and adds what they name in the order of i: bitwise what index_add gives.
Program index_add_rows(DType ids, const IndexTiling& tiling);

/// index_add of ids that do not decrease: an instance owns rows and columns of Y, finds the ids of
/// its rows by halving, and adds what they name in the order of i: bitwise what index_add gives, no
/// atomics, many instances. Of ids that do decrease some add nothing.
Program index_add_sorted(DType ids, const IndexTiling& tiling = {});
/// The same where an instance adds what the ids of all its rows name in one walk, and finds the
/// first of them by looking at many at once.
Program index_add_sorted_rows(DType ids, const IndexTiling& tiling);
/// The same in one tensor by atomics, in no stated order: an instance adds a tile of X to Y (inout)
/// wherever it belongs. Not bitwise repeatable, but exact where sums are.
Program index_add_atomic(DType ids, const IndexTiling& tiling = {});

/// Throws UserError naming the first position of ids (and its value) that is not in [0, extent):
/// what a caller asks for before a launch, when an id outside is to be an error. Kernels themselves
/// never read or write outside, and say in their headers what an id outside gives.
void check_ids(const TensorView& ids, int64_t extent, const std::string& name);

/// Y[N, M] = X[M, N] turned, elements of any type, any strides. A tile is read along its rows and
/// written along its columns, each a line of the caches. Exact.
Program transpose_matrix(DType t, int64_t tile);

/// Y[B, M, N] = X[B, M, N], elements of any type, any strides: what brings a tensor into another
/// layout. Exact.
Program copy_tensor(DType t, const IndexTiling& tiling);

check::Reference embedding_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference index_add_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference copy_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference transpose_reference(const Problem& p, std::span<const TensorView> inputs);

std::vector<KernelEntry> index_entries();

}  // namespace tw::kernels
