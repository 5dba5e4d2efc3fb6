#include <cmath>
#include <gmock/gmock.h>
#include <thread>

#include "tw/capi/tilewright.h"

#include "tests/runtime/fake/fake_cuda.h"

namespace tw {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr tw_dtype kFloat32 = {TW_FLOAT, 32, 1};

/// Row-major f32 [m, n] that counts from `first`.
struct Values {
  Values(int64_t m, int64_t n, float first = 0) : dims{m, n}, values(static_cast<size_t>(m * n)) {
    for (float& v : values) v = first++;
    tensor = {values.data(), kFloat32, 2, dims, nullptr, nullptr};
  }
  int64_t dims[2];
  std::vector<float> values;
  tw_tensor tensor;
};

class KernelApi : public testing::Test {
 protected:
  KernelApi() { EXPECT_EQ(tw_device_open("cpu:0", &cpu_), TW_OK) << tw_last_error(); }
  ~KernelApi() override { tw_device_free(cpu_); }

  /// add of two matrices, as `options` say.
  tw_kernel* open_add(const char* choices = "op=add", const tw_kernel_options* options = nullptr) {
    tw_kernel* kernel = nullptr;
    EXPECT_EQ(tw_kernel_open(cpu_, "elementwise", "m=2,n=3", kFloat32, choices, options, &kernel),
              TW_OK)
        << tw_last_error();
    return kernel;
  }
  void expect_refused(const char* name, const char* shape, const char* choices,
                      const std::string& part) {
    tw_kernel* kernel = nullptr;
    EXPECT_EQ(tw_kernel_open(cpu_, name, shape, kFloat32, choices, nullptr, &kernel),
              TW_USER_ERROR);
    EXPECT_THAT(tw_last_error(), HasSubstr(part));
    EXPECT_EQ(kernel, nullptr);
  }

  tw_device* cpu_ = nullptr;
};

TEST_F(KernelApi, SaysItsArguments) {
  tw_kernel* add = open_add();
  size_t count = 0;
  ASSERT_EQ(tw_kernel_argument_count(add, &count), TW_OK);
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    tw_argument a = {};
    ASSERT_EQ(tw_kernel_argument(add, i, &a), TW_OK);
    text += std::string(a.name) + (a.output ? ">" : "<") + std::to_string(a.dtype.bits);
    EXPECT_EQ(std::vector<int64_t>(a.dims, a.dims + a.rank), (std::vector<int64_t>{2, 3}));
  }
  EXPECT_EQ(text, "A<32B<32Y>32");
  tw_argument none = {};
  EXPECT_EQ(tw_kernel_argument(add, 3, &none), TW_USER_ERROR);
  EXPECT_STREQ(tw_last_error(), "there is no argument 3, the kernel has 3");
  const char* mapping = nullptr;
  ASSERT_EQ(tw_kernel_mapping(add, &mapping), TW_OK);
  EXPECT_THAT(mapping, StartsWith("cpu1"));
  tw_kernel_free(add);
}

TEST_F(KernelApi, RunsOnTensorsOfAnyExtentsAndStrides) {
  tw_kernel* add = open_add();
  const Values a(2, 3), b(2, 3, 10);
  Values y(2, 3);
  tw_tensor arguments[] = {a.tensor, b.tensor, y.tensor};
  ASSERT_EQ(tw_kernel_prepare(add, arguments, 3), TW_OK) << tw_last_error();
  EXPECT_THAT(y.values, ElementsAre(0, 1, 2, 3, 4, 5));
  ASSERT_EQ(tw_kernel_launch(add, arguments, 3, nullptr), TW_OK) << tw_last_error();
  EXPECT_THAT(y.values, ElementsAre(10, 12, 14, 16, 18, 20));
  const int64_t turned[] = {3, 2}, strides[] = {1, 3};
  for (tw_tensor* t : {&arguments[0], &arguments[2]}) {
    t->dims = turned;
    t->strides = strides;
  }
  const Values c(3, 2, 100);
  arguments[1] = c.tensor;
  ASSERT_EQ(tw_kernel_launch(add, arguments, 3, nullptr), TW_OK) << tw_last_error();
  EXPECT_THAT(y.values, ElementsAre(100, 103, 106, 104, 107, 110));
  tw_kernel_free(add);
}

TEST_F(KernelApi, GivesTheSourceOfEachForm) {
  tw_kernel* add = open_add();
  const Values a(2, 3), b(2, 3);
  Values y(2, 3);
  tw_tensor arguments[] = {a.tensor, b.tensor, y.tensor};
  const char *dense = nullptr, *again = nullptr, *spread = nullptr;
  ASSERT_EQ(tw_kernel_source(add, arguments, 3, &dense), TW_OK) << tw_last_error();
  EXPECT_THAT(dense, HasSubstr("tw_add"));
  ASSERT_EQ(tw_kernel_source(add, arguments, 3, &again), TW_OK);
  EXPECT_EQ(dense, again);
  const int64_t one_row[] = {1, 2}, strides[] = {6, 2};
  for (tw_tensor& t : arguments) {
    t.dims = one_row;
    t.strides = strides;
  }
  ASSERT_EQ(tw_kernel_source(add, arguments, 3, &spread), TW_OK);
  EXPECT_NE(std::string(dense), spread);
  tw_kernel_free(add);
}

TEST_F(KernelApi, ThreadsShareAKernelThatOutlivesItsDevice) {
  tw_device* device = nullptr;
  ASSERT_EQ(tw_device_open("cpu:0", &device), TW_OK);
  tw_kernel* add = nullptr;
  ASSERT_EQ(tw_kernel_open(device, "elementwise", nullptr, kFloat32, nullptr, nullptr, &add), TW_OK)
      << tw_last_error();
  tw_device_free(device);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([add, t] {
      const Values a(4, 3, static_cast<float>(t)), b(4, 3);
      for (int i = 0; i < 20; ++i) {
        Values y(4, 3);
        const tw_tensor arguments[] = {a.tensor, b.tensor, y.tensor};
        EXPECT_EQ(tw_kernel_launch(add, arguments, 3, nullptr), TW_OK) << tw_last_error();
        EXPECT_EQ(y.values[11], static_cast<float>(t + 22));
        const char* source = nullptr;
        EXPECT_EQ(tw_kernel_source(add, arguments, 3, &source), TW_OK);
        EXPECT_EQ(tw_kernel_launch(add, arguments, 2, nullptr), TW_USER_ERROR);
      }
    });
  for (std::thread& t : threads) t.join();
  tw_kernel_free(add);
}

TEST_F(KernelApi, RefusesWrongProblems) {
  expect_refused("sofmax", nullptr, nullptr, "no kernel is called 'sofmax'");
  EXPECT_THAT(tw_last_error_hint(), HasSubstr("softmax"));
  expect_refused("softmax", "m=2,k=3", nullptr, "kernel 'softmax' has no axis 'k'");
  expect_refused("softmax", "m=-2", nullptr, "axis 'm' is -2");
  expect_refused("softmax", "m=2x", nullptr, "shape has m=2x, wanted a whole number");
  expect_refused("softmax", "m=99999999999999999999", nullptr, "wanted a whole number");
  for (const char* shape : {"m", "=2", "m=", "m=2,,n=3", ","})
    expect_refused("softmax", shape, nullptr, "shape has '");
  expect_refused("softmax", "m=2,m=3", nullptr, "shape names 'm' twice");
  expect_refused("elementwise", nullptr, "op=addd", "option 'op' of kernel 'elementwise'");
  expect_refused("softmax", nullptr, "op=add", "kernel 'softmax' has no option 'op'");
  tw_kernel* kernel = nullptr;
  EXPECT_EQ(tw_kernel_open(cpu_, "softmax", nullptr, {TW_INT, 8, 1}, nullptr, nullptr, &kernel),
            TW_USER_ERROR);
  EXPECT_STREQ(tw_last_error(), "kernel 'softmax' has no i8 form");
  EXPECT_EQ(tw_kernel_open(cpu_, "softmax", nullptr, {9, 8, 1}, nullptr, nullptr, &kernel),
            TW_USER_ERROR);
  EXPECT_THAT(tw_last_error(), StartsWith("kernel 'softmax' has type code 9"));
}

TEST_F(KernelApi, RefusesWrongOptions) {
  tw_kernel* kernel = nullptr;
  tw_kernel_options options = {};
  const auto open = [&] {
    return tw_kernel_open(cpu_, "softmax", nullptr, kFloat32, nullptr, &options, &kernel);
  };
  EXPECT_EQ(open(), TW_USER_ERROR);
  EXPECT_THAT(tw_last_error(), StartsWith("options have size 0"));
  options = {sizeof options, -1, nullptr};
  EXPECT_EQ(open(), TW_USER_ERROR);
  EXPECT_STREQ(tw_last_error(), "options have threads -1, wanted 0 or more");
  options = {sizeof options, 0, "cpu1 kd=64"};
  EXPECT_EQ(open(), TW_USER_ERROR);
  EXPECT_THAT(tw_last_error(), HasSubstr("kd"));
  options = {sizeof options, 1, "cpu1 kc=64"};
  kernel = open_add("op=mul", &options);
  const char* mapping = nullptr;
  ASSERT_EQ(tw_kernel_mapping(kernel, &mapping), TW_OK);
  EXPECT_STREQ(mapping, "cpu1 kc=64");
  tw_kernel_free(kernel);
}

TEST_F(KernelApi, RefusesWrongCalls) {
  tw_kernel* add = open_add();
  const Values a(2, 3);
  Values y(2, 3);
  tw_tensor arguments[] = {a.tensor, a.tensor, y.tensor};
  const auto refused = [&](size_t n, void* stream, const std::string& part) {
    EXPECT_EQ(tw_kernel_launch(add, arguments, n, stream), TW_USER_ERROR);
    EXPECT_THAT(tw_last_error(), HasSubstr(part));
  };
  refused(2, nullptr, "2 arguments, the kernel has 3");
  refused(3, &y, "cpu:0 has no streams");
  arguments[2] = a.tensor;
  refused(3, nullptr, "overlaps");
  arguments[2] = y.tensor;
  arguments[1].data = nullptr;
  refused(3, nullptr, "argument 'B' has no data");
  arguments[1] = Values(2, 4).tensor;
  arguments[1].dims = y.dims;
  arguments[1].dtype = {TW_FLOAT, 64, 1};
  arguments[1].data = y.values.data();
  refused(3, nullptr, "f64");
  EXPECT_EQ(tw_kernel_launch(add, nullptr, 3, nullptr), TW_USER_ERROR);
  EXPECT_EQ(tw_kernel_launch(nullptr, arguments, 3, nullptr), TW_USER_ERROR);
  EXPECT_STREQ(tw_last_error(), "argument 'kernel' is NULL");
  tw_kernel_free(add);
  tw_kernel_free(nullptr);
}

TEST_F(KernelApi, DevicesAreRefusedByName) {
  tw_device* device = nullptr;
  EXPECT_EQ(tw_device_open("gpu", &device), TW_USER_ERROR);
  EXPECT_THAT(tw_last_error(), HasSubstr("unknown device 'gpu'"));
  EXPECT_EQ(tw_device_open(nullptr, &device), TW_USER_ERROR);
  setenv("TW_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  EXPECT_EQ(tw_device_open("cuda:0", &device), TW_ENV_ERROR);
  unsetenv("TW_CUDA_DRIVER");
  EXPECT_EQ(device, nullptr);
  tw_device_free(nullptr);
}

TEST(ErrorBound, IsThatOfChecks) {
  const double exact[] = {1, -3, 0}, sums[] = {100, 3, 0};
  double bound[3];
  tw_accuracy a = {"reduction", kFloat32, 64, 2};
  ASSERT_EQ(tw_error_bound(&a, 3, exact, sums, bound), TW_OK) << tw_last_error();
  const double unit = std::ldexp(1, -24);
  EXPECT_THAT(bound, ElementsAre(2 * unit + 68 * unit * 100, 4 * unit + 68 * unit * 3,
                                 std::ldexp(1, -149)));
  a.family = "exact";
  ASSERT_EQ(tw_error_bound(&a, 1, exact, sums, bound), TW_OK);
  EXPECT_EQ(bound[0], 0);
  a.family = "sum";
  EXPECT_EQ(tw_error_bound(&a, 1, exact, sums, bound), TW_USER_ERROR);
  EXPECT_THAT(tw_last_error(), HasSubstr("no family is called 'sum'"));
  EXPECT_EQ(tw_error_bound(&a, 0, nullptr, nullptr, nullptr), TW_USER_ERROR);
}

/// On a driver without a GPU: what reaches it.
class FakeGpu : public testing::Test {
 protected:
  FakeGpu() {
    setenv("TW_CUDA_DRIVER", TW_FAKE_CUDA, 1);
    setenv("VIRTUAL_ENV", TW_TEST_DIR "/../../.venv", 1);
    fake_.parameter_words = 3;
    EXPECT_EQ(tw_device_open("cuda:0", &gpu_), TW_OK) << tw_last_error();
    EXPECT_EQ(tw_kernel_open(gpu_, "elementwise", "m=64,n=128", kFloat32, "op=add", nullptr, &add_),
              TW_OK)
        << tw_last_error();
  }
  ~FakeGpu() override {
    tw_kernel_free(add_);
    tw_device_free(gpu_);
    fake_.allocated.clear();
    unsetenv("TW_CUDA_DRIVER");
  }
  /// A tensor that the driver takes for one of the GPU.
  tw_tensor on_gpu(Values& v) {
    fake_.allocated[v.values.data()] = {v.values.size() * sizeof(float), 0};
    return v.tensor;
  }

  test::FakeCuda& fake_ = test::fresh_fake(TW_FAKE_CUDA);
  tw_device* gpu_ = nullptr;
  tw_kernel* add_ = nullptr;
};

TEST_F(FakeGpu, LaunchesReachTheirStream) {
  Values a(64, 128), b(64, 128), y(64, 128);
  const tw_tensor arguments[] = {on_gpu(a), on_gpu(b), on_gpu(y)};
  ASSERT_EQ(tw_kernel_prepare(add_, arguments, 3), TW_OK) << tw_last_error();
  EXPECT_THAT(fake_.launches, testing::IsEmpty());
  void* stream[2] = {};  // as the driver's are that capture nothing
  ASSERT_EQ(tw_kernel_launch(add_, arguments, 3, nullptr), TW_OK) << tw_last_error();
  ASSERT_EQ(tw_kernel_launch(add_, arguments, 3, stream), TW_OK) << tw_last_error();
  ASSERT_EQ(fake_.launches.size(), 2);
  EXPECT_EQ(fake_.launches[0].stream, nullptr);
  const test::FakeCuda::Launch& l = fake_.launches[1];
  EXPECT_THAT(l.function, StartsWith("tw_add"));
  EXPECT_EQ(l.stream, stream);
  EXPECT_THAT(l.words, ElementsAre(reinterpret_cast<uint64_t>(a.values.data()),
                                   reinterpret_cast<uint64_t>(b.values.data()),
                                   reinterpret_cast<uint64_t>(y.values.data())));
  const char* source = nullptr;
  ASSERT_EQ(tw_kernel_source(add_, arguments, 3, &source), TW_OK);
  EXPECT_THAT(source, HasSubstr("__global__"));
  EXPECT_THAT(source, HasSubstr(l.function));
}

TEST_F(FakeGpu, MemoryOfTheHostAndFailuresAreTold) {
  Values a(64, 128), b(64, 128), y(64, 128);
  tw_tensor arguments[] = {on_gpu(a), b.tensor, on_gpu(y)};
  EXPECT_EQ(tw_kernel_launch(add_, arguments, 3, nullptr), TW_USER_ERROR);
  EXPECT_THAT(tw_last_error(), HasSubstr("'B'"));
  arguments[1] = on_gpu(b);
  ASSERT_EQ(tw_kernel_prepare(add_, arguments, 3), TW_OK) << tw_last_error();
  fake_.failing = "cuLaunchKernelEx";
  fake_.code = 700;
  EXPECT_EQ(tw_kernel_launch(add_, arguments, 3, nullptr), TW_DEVICE_ERROR);
  EXPECT_THAT(tw_last_error(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

}  // namespace
}  // namespace tw
