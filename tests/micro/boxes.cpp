#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "tests/micro/micro.h"

namespace tw::test {

namespace {

/// A box of a tensor; axes as in tensors, the last one's elements touch.
struct MicroBox {
  DType type;
  std::vector<int64_t> dims;
  std::vector<int> box, at;
  int swizzle;

  int64_t count() const {
    return std::accumulate(box.begin(), box.end(), int64_t{1}, std::multiplies<>());
  }
  int64_t bytes_of() const { return count() * bytes(type); }
  /// Fastest axis first.
  std::vector<int> spec_box() const { return {box.rbegin(), box.rend()}; }
  std::string coordinates() const {
    return fmt::format("{}", fmt::join(at.rbegin(), at.rend(), ", "));
  }
  std::string says() const {
    return fmt::format("{} {} of {} at {} swizzle {}", name(type), fmt::join(box, "x"),
                       fmt::join(dims, "x"), fmt::join(at, ","), swizzle);
  }
};

/// Where element i of the box lies in shared memory, by the pictures of swizzles: pieces of 16
/// bytes change places with the number of the line of 128 bytes.
int64_t place_in_box(const MicroBox& b, int64_t i) {
  const int64_t size = bytes(b.type), byte = size * i, pieces = b.swizzle / 16;
  if (pieces == 0) return i;
  const int64_t piece = (byte / 16 % pieces) ^ (byte / 128 % pieces);
  return (byte / b.swizzle * b.swizzle + piece * 16 + byte % 16) / size;
}

/// The tensor's element that element i of the box stands for; -1 outside.
int64_t element_in_tensor(const MicroBox& b, int64_t i) {
  int64_t index = 0, step = 1;
  for (size_t k = b.dims.size(); k-- > 0;) {
    const int64_t at = b.at[k] + i % b.box[k];
    i /= b.box[k];
    if (at < 0 || at >= b.dims[k]) return -1;
    index += at * step;
    step *= b.dims[k];
  }
  return index;
}

uint64_t mask_of(DType t) { return bits(t) == 64 ? ~0ull : (1ull << bits(t)) - 1; }

Tensor elements(const MicroBox& b, uint64_t from) {
  return tensor_of_bits(b.type, b.dims, [&](int64_t i) {
    return (from + static_cast<uint64_t>(i)) * 0x0101010101010101 & mask_of(b.type);
  });
}

/// What shared memory holds behind a load.
Tensor loaded(const MicroBox& b, const Tensor& x, int64_t copies) {
  Tensor want = zeros(b.type, {copies, b.count()});
  for (int64_t i = 0; i < b.count(); ++i) {
    const int64_t from = element_in_tensor(b, i);
    for (int64_t c = 0; c < copies; ++c)
      store_bits(b.type, want.view().data, c * b.count() + place_in_box(b, i),
                 from < 0 ? 0 : load_bits(b.type, x.view().data, from));
  }
  return want;
}

constexpr int64_t kBoxBytes = 16384;  ///< that the largest box has

const char* const kBegin = R"(  u8* shared = (u8*)(((u64)tw_shared() + 1023) & ~1023ul);
  u64* full = (u64*)(shared + 16384);
)";
const char* const kInit = R"(  if (t == 0) {
    tw_mbarrier_init(full, 1);
    tw_mbarrier_fence_init();
  }
)";

/// Boxes of one rank, one after the other, through one barrier.
MicroKernel load_boxes(const std::string& name, const std::vector<MicroBox>& boxes,
                       bool multicast) {
  const size_t rank = boxes[0].dims.size();
  const std::string function =
      fmt::format("tw_tma_load_{}d{}", rank, multicast ? "_multicast" : "");
  const int64_t copies = multicast ? 2 : 1;
  MicroMaker m("boxes", name, {function, "tw_tma_prefetch"});
  std::string body =
      std::string(kBegin) + kInit + (multicast ? "  tw_cluster_sync();\n" : "  tw_sync();\n");
  for (size_t i = 0; i < boxes.size(); ++i) {
    const MicroBox& b = boxes[i];
    const Tensor x = elements(b, 1 + i);
    m.input(x).output(loaded(b, x, copies), {b.says()}).map(2 * i, b.swizzle, b.spec_box());
    body += fmt::format(R"(  if (t == 0) {{
    tw_tma_prefetch(&args.maps[{0}]);
    tw_mbarrier_arrive_expect(full, {1});
    {2}{3}(shared, &args.maps[{0}], full, {4}{5});
  }}
  tw_mbarrier_wait(full, {6});
  for (int i = t; i < {7}; i += 32) (({10}*)x{8})[{9} + i] = ((const {10}*)shared)[i];
  tw_fence_async();
  {11};
)",
                        i, b.bytes_of(),
                        multicast ? "if (tw_cluster_rank() == " + std::to_string(i % 2) + ") " : "",
                        function, b.coordinates(), multicast ? ", 3" : "", i % 2, b.count(),
                        2 * i + 1, multicast ? fmt::format("tw_block() * {}", b.count()) : "0",
                        bytes(b.type) == 1   ? "u8"
                        : bytes(b.type) == 2 ? "u16"
                        : bytes(b.type) == 4 ? "u32"
                                             : "u64",
                        multicast ? "tw_cluster_sync()" : "tw_sync()");
  }
  if (multicast) m.cluster(2);
  return m.shared(1024 + kBoxBytes + 8).make(copies, 32, body);
}

/// Stores begin at no negative coordinate.
MicroKernel store_boxes(const std::string& name, std::vector<MicroBox> boxes) {
  for (MicroBox& b : boxes) {
    for (int& at : b.at) at = std::max(at, 0);
  }
  const size_t rank = boxes[0].dims.size();
  const std::string function = fmt::format("tw_tma_store_{}d", rank);
  MicroMaker m("boxes", name, {function});
  std::string body = kBegin;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const MicroBox& b = boxes[i];
    const Tensor x = elements(b, 1 + i), after = copy(x);
    const Tensor raw = tensor_of_bits(b.type, {b.count()}, [&](int64_t e) {
      return (static_cast<uint64_t>(e) * 7 + 3) * 0x0101010101010103 & mask_of(b.type);
    });
    for (int64_t e = 0; e < b.count(); ++e) {
      const int64_t to = element_in_tensor(b, e);
      if (to >= 0)
        store_bits(b.type, after.view().data, to,
                   load_bits(b.type, raw.view().data, place_in_box(b, e)));
    }
    m.input(raw).changed(x, after, {b.says()}).map(2 * i + 1, b.swizzle, b.spec_box());
    body += fmt::format(R"(  for (int i = t; i < {0}; i += 32) (({1}*)shared)[i] = (({1}*)x{2})[i];
  tw_fence_async();
  tw_sync();
  if (t == 0) {{
    {3}(&args.maps[{4}], shared, {5});
    tw_bulk_commit();
    tw_bulk_wait<0>();
  }}
  tw_sync();
)",
                        b.bytes_of() / 4, "u32", 2 * i, function, i, b.coordinates());
  }
  body.erase(body.find("  u64* full"),
             std::string("  u64* full = (u64*)(shared + 16384);\n").size());
  return m.shared(1024 + kBoxBytes + 8).make(1, 32, body);
}

/// Of one to five axes, every swizzle, cut at every side. Rows begin with whole 16 bytes.
std::vector<MicroBox> boxes_of(int rank) {
  switch (rank) {
    case 1:
      return {{u16, {40}, {16}, {8}, 0},
              {u16, {40}, {24}, {-8}, 0},
              {u16, {40}, {16}, {32}, 32},
              {u16, {64}, {32}, {8}, 64},
              {u16, {200}, {64}, {136}, 128}};
    case 2:
      return {{u16, {9, 32}, {8, 16}, {-2, 24}, 0},   {u16, {9, 32}, {8, 16}, {1, 8}, 32},
              {u16, {9, 32}, {16, 32}, {-4, -8}, 64}, {u16, {20, 72}, {16, 64}, {9, 16}, 128},
              {u16, {70, 64}, {64, 64}, {3, 0}, 128}, {u16, {70, 64}, {64, 32}, {3, 32}, 64},
              {u16, {70, 64}, {64, 16}, {3, 48}, 32}};
    case 3:
      return {{u16, {3, 5, 16}, {2, 4, 16}, {-1, 2, 0}, 32},
              {u16, {3, 5, 40}, {2, 4, 8}, {2, -1, 32}, 0},
              {u16, {3, 5, 40}, {2, 3, 32}, {1, 3, 16}, 64},
              {u16, {3, 5, 72}, {3, 5, 64}, {1, -2, 8}, 128}};
    case 4:
      return {{u16, {2, 3, 4, 16}, {2, 2, 3, 8}, {1, -1, 2, 8}, 0},
              {u16, {2, 3, 4, 16}, {1, 2, 3, 16}, {1, 2, -1, 0}, 32},
              {u16, {2, 3, 4, 64}, {2, 3, 4, 32}, {0, 0, 0, 40}, 64},
              {u16, {2, 3, 4, 64}, {2, 2, 4, 64}, {-1, 1, 1, -8}, 128}};
    default:
      return {{u16, {2, 2, 3, 4, 64}, {1, 2, 2, 3, 64}, {1, 1, -1, 2, -32}, 128},
              {u16, {2, 2, 3, 4, 64}, {2, 2, 2, 3, 32}, {0, -1, 1, 1, 32}, 64},
              {u16, {2, 2, 3, 4, 16}, {2, 1, 3, 2, 16}, {1, 1, 0, 3, 0}, 32},
              {u16, {2, 2, 3, 4, 16}, {1, 2, 3, 4, 8}, {0, 0, 0, 0, 8}, 0}};
  }
}

/// Elements of other sizes, rows of 48 bytes.
std::vector<MicroBox> boxes_of_types() {
  std::vector<MicroBox> all;
  for (const DType t : {u8, e4m3, f16, bf16, i32, f32, f64, i64}) {
    const int row = static_cast<int>(32 / bytes(t)), dims = 5 * row;
    all.push_back({t, {11, dims}, {6, row}, {7, row / 2}, 32});
    all.push_back({t, {11, dims}, {6, row / 2 * 3}, {-1, dims - row}, 0});
  }
  return all;
}

}  // namespace

std::vector<MicroKernel> box_micros() {
  std::vector<MicroKernel> all;
  for (int rank = 1; rank <= 5; ++rank) {
    all.push_back(load_boxes(fmt::format("tma_load_{}d", rank), boxes_of(rank), false));
    all.push_back(load_boxes(fmt::format("tma_multicast_{}d", rank), boxes_of(rank), true));
    all.push_back(store_boxes(fmt::format("tma_store_{}d", rank), boxes_of(rank)));
  }
  all.push_back(load_boxes("tma_load_types", boxes_of_types(), false));
  all.push_back(store_boxes("tma_store_types", boxes_of_types()));
  return all;
}

}  // namespace tw::test
