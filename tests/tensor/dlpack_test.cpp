#include "tw/tensor/dlpack.h"

#include "tw/base/error.h"

#include "tests/support/expect_error.h"

namespace tw::dlpack {

/// An array of another library: counts how often its deleter runs.
struct Foreign {
  std::vector<int64_t> shape, strides;
  std::vector<double> memory = std::vector<double>(12);
  int deleted = 0;
  ManagedTensor managed{};

  Foreign(std::vector<int64_t> dims, std::vector<int64_t> steps, DataType type = {2, 64, 1})
      : shape(std::move(dims)), strides(std::move(steps)) {
    for (int i = 0; i < 12; ++i) memory[i] = i;
    managed.array = {memory.data(),
                     {1, 0},
                     static_cast<int32_t>(shape.size()),
                     type,
                     shape.data(),
                     strides.empty() ? nullptr : strides.data(),
                     0};
    managed.context = this;
    managed.deleter = [](ManagedTensor* m) { ++static_cast<Foreign*>(m->context)->deleted; };
  }
};

TEST(DLPack, ImportWithoutStridesIsContiguous) {
  Foreign f({3, 4}, {});
  {
    Tensor t = import_tensor(&f.managed);
    Tensor row = t.slice(0, 2, 3);
    t = Tensor();
    EXPECT_EQ(get(row, 3), 11);
    EXPECT_EQ(f.deleted, 0);
  }
  EXPECT_EQ(f.deleted, 1);
}

TEST(IndexCases, IDX_04) {
  Foreign f({3, 4}, {4, -1});
  f.managed.array.byte_offset = 3 * sizeof(double);
  Tensor t = import_tensor(&f.managed);
  std::vector<double> got;
  for (int i = 0; i < 12; ++i) got.push_back(get(t, i));
  EXPECT_EQ(got, (std::vector<double>{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8}));
}

TEST(DLPack, WhatWeCannotTakeIsRefusedAndReleased) {
  auto refused = [](const char* part, auto&& spoil) {
    Foreign f({3, 4}, {4, 1});
    spoil(f);
    TW_EXPECT_ERROR(UserError, part, [&] { import_tensor(&f.managed); });
    EXPECT_EQ(f.deleted, 1) << part;
  };
  refused("device type 2: wanted host memory", [](Foreign& f) { f.managed.array.device.type = 2; });
  refused("type code 5, 128 bits", [](Foreign& f) { f.managed.array.dtype = {5, 128, 1}; });
  refused("64 bits, 2 lanes", [](Foreign& f) { f.managed.array.dtype.lanes = 2; });
  refused("without data", [](Foreign& f) { f.managed.array.data = nullptr; });
  refused("f64 wants multiples of 8", [](Foreign& f) { f.managed.array.byte_offset = 4; });
  refused("negative extent", [](Foreign& f) { f.shape[0] = -3; });
  refused("past 2^63", [](Foreign& f) { f.strides[0] = int64_t{1} << 62; });
  refused("without a shape", [](Foreign& f) { f.managed.array.shape = nullptr; });
}

TEST(DLPack, PackedTypesHaveNoPlaceThere) {
  TW_EXPECT_ERROR(UserError, "elements of less than a byte have no strides there; export its bytes",
                  [] {
                    export_tensor(host_tensor(e2m1, {2, 4}));
                  });
}

TEST(DLPack, ExportGoesThereAndBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (is_packed(static_cast<DType>(i))) continue;
    Tensor t = host_tensor(static_cast<DType>(i), {2, 3}).transpose(0, 1);
    set(t, 1, 1);
    Tensor back = import_tensor(export_tensor(t));
    EXPECT_EQ(to_string(back.view()), to_string(t.view()));
    EXPECT_EQ(back.view().data, t.view().data);
    t = Tensor();
    EXPECT_EQ(get(back, 1), 1);
  }
}

}  // namespace tw::dlpack
