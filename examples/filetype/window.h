#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace filetype {

/// What a model reads of a file: `beg_size` bytes of its first block and `end_size` of its last.
struct WindowSizes {
  int64_t beg_size = 0, end_size = 0;
  int64_t block_size = 0;
  int64_t least = 0;  ///< files of fewer bytes, white space aside, are not given to the model
  int32_t padding = 0;
  int64_t count() const { return beg_size + end_size; }
};

/// What is known of a file without the model: `window` means that it has to be asked.
enum class Content { window, empty, text, bytes };

/// Fills `window`, count() numbers, with the bytes of the file as the model wants them: those of
/// the first block without leading white space, then those of the last block without trailing, with
/// padding after the first and before the second where the file has too few. UserError for files
/// that cannot be read.
Content read_window(const std::string& path, const WindowSizes& sizes, std::span<int32_t> window);

}  // namespace filetype
