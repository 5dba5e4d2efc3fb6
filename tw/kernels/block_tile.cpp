#include "tw/kernels/block_tile.h"

#include <algorithm>

namespace tw::kernels {
namespace {

/// Elements of a block of 256 threads, and of one where there is little to do.
constexpr int64_t kUsual = 4096, kFew = 1024;

/// Instances that give each multiprocessor several blocks.
int64_t enough_instances(const GpuMachine& gpu) { return 2 * gpu.multiprocessors; }

}  // namespace

int64_t extent_for(int64_t n, int64_t least, int64_t most) {
  int64_t extent = least;
  while (extent < n && extent < most) extent *= 2;
  return std::min(extent, most);
}

BlockTile rows_tile(int64_t rows, int64_t columns, const GpuMachine& gpu, int64_t longest,
                    int64_t elements) {
  constexpr int64_t kPart = 8192;
  if (columns > longest) return {1, std::min(kPart, longest)};
  BlockTile t{1, extent_for(columns, 32, longest)};
  // Three quarters of a power of two, where that is a whole number of pieces for all threads.
  if (t.cols >= 8192 && t.cols / 4 * 3 >= columns) t.cols = t.cols / 4 * 3;
  while (2 * t.rows * t.cols <= elements && rows >= 2 * t.rows * enough_instances(gpu)) t.rows *= 2;
  return t;
}

int64_t longest_kept(const GpuMachine& gpu, int64_t of_block, int64_t bytes_a_column) {
  constexpr int64_t kOfEach = 16384;
  const bool cluster = gpu.most_cluster > 1 && bytes_a_column >= 4;
  return cluster ? std::max(of_block, gpu.most_cluster * kOfEach) : of_block;
}

BlockTile elements_tile(int64_t rows, int64_t columns, const GpuMachine& gpu) {
  BlockTile t{1, extent_for(columns, 8, 1024)};
  const bool many = rows * columns >= kUsual * enough_instances(gpu);
  while (2 * t.rows * t.cols <= (many ? kUsual : kFew)) t.rows *= 2;
  return t;
}

BlockTile along_rows(BlockTile t, int64_t columns) {
  while (t.rows > 1 && columns % (2 * t.cols) == 0) t = {t.rows / 2, 2 * t.cols};
  return t;
}

BlockTile columns_tile(int64_t rows, int64_t columns, int64_t element_bytes, int64_t most,
                       const GpuMachine& gpu) {
  constexpr int64_t kLine = 128, kWidest = 1024;
  const bool narrow = element_bytes <= 2;
  BlockTile t{1, kLine / element_bytes};
  const int64_t fewest = t.cols * gpu.multiprocessors / (narrow ? 1 : 2);
  if (columns < fewest) t.cols /= 2;
  // All blocks run at once: three of 512 threads share a multiprocessor where elements are narrow.
  const int64_t enough = narrow ? gpu.multiprocessors * 3 / 2 : enough_instances(gpu);
  while (columns >= 2 * t.cols * enough && t.cols * element_bytes < kWidest) t.cols *= 2;
  t.rows = extent_for(rows, 8, most / t.cols);
  return t;
}

}  // namespace tw::kernels
