#pragma once

#include <cstdint>

#include "tw/target/gpu.h"

namespace tw::kernels {

/// Extents of a tile of a matrix for a GPU, few for many shapes. A block keeps 4 to 32 elements a
/// thread of its largest tile, by what is loaded together; tiles of more than 64 elements a thread
/// leave registers.
struct BlockTile {
  int64_t rows = 1;
  int64_t cols = 1024;
};

/// Longest rows of f32 that a block keeps in registers.
inline constexpr int64_t kLongestRow = 32768;

/// The smallest power of two from `least` on that is at least n, `most` where that is smaller.
int64_t extent_for(int64_t n, int64_t least, int64_t most);

/// Elements of a tile of usual rows, and of rows that share what they read for each column.
inline constexpr int64_t kRowElements = 4096, kSharingElements = 8192;

/// Whole rows of up to `longest` elements, several (of `elements` together) where they are short
/// and there are many; parts of longer rows.
BlockTile rows_tile(int64_t rows, int64_t columns, const GpuMachine& gpu,
                    int64_t longest = kLongestRow, int64_t elements = kRowElements);

/// Longest rows that are kept between two uses: a block keeps so many elements. A cluster of blocks
/// keeps more, which is worth it where reading them again costs 4 bytes a column.
int64_t longest_kept(const GpuMachine& gpu, int64_t of_block, int64_t bytes_a_column);

/// A part of a matrix whose elements are independent.
BlockTile elements_tile(int64_t rows, int64_t columns, const GpuMachine& gpu);

/// As many elements along one row, where rows are whole tiles of that: their places differ by
/// constants.
BlockTile along_rows(BlockTile t, int64_t columns);

/// A few columns of many rows, so many elements at most: as wide as a line of the caches at least,
/// half of it where many of the multiprocessors would have none.
BlockTile columns_tile(int64_t rows, int64_t columns, int64_t element_bytes, int64_t most,
                       const GpuMachine& gpu);

}  // namespace tw::kernels
