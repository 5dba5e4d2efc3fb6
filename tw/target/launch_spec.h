#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tw/math/expr.h"
#include "tw/num/dtype.h"

namespace tw {

/// The text ABI: what emitted CPU text and its host agree on. Emitted text declares the same
/// structs itself (it includes no header); emit/cpu/prelude and this file must agree, which a test
/// checks by compiling both.
///
/// `par` runs task(ctx, lo, hi, scratch) on disjoint ranges that cover [0, n), on any number of
/// threads, and returns when all are done. `scratch` is `LaunchSpec::scratch_bytes` bytes, 64-byte
/// aligned, private to the call, uninitialised. `threads` is how many that may be, at least 1.
struct TwHost {
  void (*par)(const TwHost* host, int64_t n, void (*task)(void*, int64_t, int64_t, void*),
              void* ctx);
  int64_t threads;
  /// A check or print of the program, by its number: `instance` has a coordinate for each axis of
  /// the grid; `element` is the first that is false (of a print: -1), `elements` are those of a
  /// print in row-major order, as registers hold them (floats narrower than f32 as f32, b1 as u8).
  /// From any thread. Never called by programs without any.
  void (*tell)(const TwHost* host, int64_t number, const int64_t* instance, int64_t element,
               const void* elements) = nullptr;
};
struct TwArgs {
  void* const* data;    ///< base address of each tensor, in declaration order
  const int64_t* dims;  ///< value of each Program::dims entry
  const int64_t*
      strides;  ///< strides in elements of every tensor, concatenated in declaration order
  const TwHost* host;
};
/// The entry of every emitted CPU text, by LaunchSpec::entry. Returns 0, or a code below.
using TwEntry = int (*)(const TwArgs*);

/// Where kernels of GPUs leave messages: two parts, of checks and of prints. A part begins with
/// MessagePart; a kernel takes `size` bytes for a record by adding to `used`, and counts it as lost
/// where it does not fit. Its elements, as registers hold them, follow a record.
inline constexpr int64_t kCheckBytes = 4096, kMessageBytes = int64_t{1} << 20;
struct MessagePart {
  uint64_t used = sizeof(MessagePart), bytes, lost = 0, unused = 0;
};
struct MessageRecord {
  uint64_t size;  ///< 0: not written, nor any after it
  int64_t number, instance[3], element;
};

/// What a host must know to launch a compiled kernel; stored beside the binary.
struct LaunchSpec {
  std::string entry;  ///< exported symbol, tw_<program>_<hash8>
  struct Arg {
    std::string name;
    DType dtype;
    int rank;
    bool written;
    bool read;
    std::vector<Expr> dims;  ///< of dim symbols (id indexes `dims`) and constants
    bool workspace = false;  ///< no call gives it: zero when the launch begins
  };
  std::vector<Arg> args;
  struct Dim {
    std::string name;
    int64_t multiple_of;
  };
  std::vector<Dim> dims;
  std::vector<Expr> grid;     ///< extents; the number of tasks is their product
  int64_t scratch_bytes = 0;  ///< per concurrent task; of a GPU: global memory per block
  bool in_order = false;      ///< instances begin in row-major order: one may wait for another
  bool messages = false;      ///< text for a GPU gets memory of kMessageBytes for checks and prints
  int threads = 0;            ///< of a GPU's block; 0: text for the CPU
  int64_t shared_bytes = 0;   ///< dynamic shared memory of a GPU's block
  int cluster = 1;            ///< of a GPU: blocks of a task
  bool early = false;         ///< text for a GPU waits for the launches before its own
  /// How copies of boxes see an argument. Maps follow the other parameters of a GPU's text.
  struct TensorMap {
    size_t arg;
    int swizzle;           ///< 0, 32, 64 or 128: bytes of a row of the box whose pieces are mixed
    std::vector<int> box;  ///< extents of a copy, fastest axis first
  };
  std::vector<TensorMap> tensor_maps;
};

/// JSON-free text form (one item a line) and back; parse throws UserError on damaged text.
std::string to_string(const LaunchSpec& s);
LaunchSpec parse_launch_spec(const std::string& text);

}  // namespace tw
