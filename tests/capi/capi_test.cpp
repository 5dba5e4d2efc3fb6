#include <gmock/gmock.h>
#include <thread>

#include "tw/capi/tilewright.h"

#include "tests/support/onnx_writer.h"
#include "tests/support/shell.h"

namespace tw {
namespace {

using namespace tw::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr tw_dtype kF32 = {TW_FLOAT, 32, 1};

std::string output_of(const std::string& command) { return shell(command + " 2>&1").out; }

/// A tensor of the caller.
struct Floats {
  explicit Floats(std::vector<int64_t> extents, float first = 0)
      : dims(std::move(extents)), values(1) {
    int64_t count = 1;
    for (const int64_t d : dims) count *= d;
    values.resize(static_cast<size_t>(count) + 1);
    for (int64_t i = 0; i < count; ++i)
      values[static_cast<size_t>(i)] = first + static_cast<float>(i);
    tensor = {values.data(), kF32,    static_cast<int32_t>(dims.size()),
              dims.data(),   nullptr, nullptr};
  }
  std::vector<int64_t> dims;
  std::vector<float> values;
  tw_tensor tensor;
};

std::vector<float> values_of(const tw_tensor& t) {
  int64_t count = 1;
  for (int32_t k = 0; k < t.rank; ++k) count *= t.dims[k];
  const auto* data = static_cast<const float*>(t.data);
  return {data, data + count};
}

/// y = Relu(x + [1, -2, 0.5]) of x: f32[N,3].
class CApi : public testing::Test {
 protected:
  CApi() {
    EXPECT_EQ(tw_session_load(folder_.write(small_model()).c_str(), nullptr, &session_), 0);
  }
  ~CApi() override { tw_session_free(session_); }

  int run(const tw_tensor& x, tw_tensor& y) const { return tw_session_run(session_, &x, 1, &y, 1); }

  /// The call must fail with a text that has `part`, and not fill y.
  void expect_refused(const tw_tensor& x, tw_tensor y, const std::string& part) const {
    void* const data = y.data;
    EXPECT_EQ(run(x, y), TW_USER_ERROR) << part;
    EXPECT_THAT(tw_last_error(), HasSubstr(part));
    EXPECT_EQ(y.data, data);
  }

  ModelFolder folder_;
  tw_session* session_ = nullptr;
};

TEST_F(CApi, SaysItsVersion) {
  EXPECT_EQ(tw_abi_version(), TW_ABI_VERSION);
  EXPECT_THAT(tw_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST_F(CApi, SaysWhatTheModelTakesAndGives) {
  size_t count = 0;
  const char* text = nullptr;
  int32_t rank = 0;
  const int64_t* dims = nullptr;
  tw_dtype dtype = {};
  ASSERT_EQ(tw_session_output_count(session_, &count), TW_OK);
  EXPECT_EQ(count, 1);
  ASSERT_EQ(tw_session_output_name(session_, 0, &text), TW_OK);
  EXPECT_STREQ(text, "y");
  ASSERT_EQ(tw_session_output_dtype(session_, 0, &dtype), TW_OK);
  EXPECT_EQ(dtype.code, TW_FLOAT);
  EXPECT_EQ(dtype.bits, 32);
  ASSERT_EQ(tw_session_output_dims(session_, 0, &rank, &dims), TW_OK);
  EXPECT_EQ(std::vector<int64_t>(dims, dims + rank), (std::vector<int64_t>{-1, 3}));
  ASSERT_EQ(tw_session_output_dim_name(session_, 0, 0, &text), TW_OK);
  EXPECT_STREQ(text, "N");
  ASSERT_EQ(tw_session_output_dim_name(session_, 0, 1, &text), TW_OK);
  EXPECT_STREQ(text, "3");
}

TEST_F(CApi, NamesOfDimsMayBeNumbersThatFitNoInteger) {
  const std::string digits(20, '9');
  const Wire shape = Wire().message(1, Wire().text(2, digits)).message(1, Wire().number(1, 3));
  ModelProto m = small_model();
  m.inputs = {Wire().text(1, "x").message(
      2, Wire().message(1, Wire().number(1, kFloat).message(2, shape)))};
  m.outputs = {shapeless_proto("y", kFloat)};
  tw_session* open = nullptr;
  ASSERT_EQ(tw_session_load(folder_.write(m).c_str(), nullptr, &open), TW_OK) << tw_last_error();
  int32_t rank = 0;
  const int64_t* dims = nullptr;
  const char* text = nullptr;
  ASSERT_EQ(tw_session_input_dims(open, 0, &rank, &dims), TW_OK);
  EXPECT_EQ(std::vector<int64_t>(dims, dims + rank), (std::vector<int64_t>{-1, 3}));
  ASSERT_EQ(tw_session_input_dim_name(open, 0, 0, &text), TW_OK);
  EXPECT_EQ(text, digits);
  tw_session_free(open);
}

TEST_F(CApi, OpenRanksAreSaid) {
  ModelProto m = small_model();
  m.inputs = {shapeless_proto("x", kFloat)};
  tw_session* open = nullptr;
  ASSERT_EQ(tw_session_load(folder_.write(m).c_str(), nullptr, &open), TW_OK);
  int32_t rank = 0;
  const int64_t* dims = nullptr;
  const char* text = nullptr;
  ASSERT_EQ(tw_session_input_dims(open, 0, &rank, &dims), TW_OK);
  EXPECT_EQ(rank, -1);
  EXPECT_EQ(tw_session_input_dim_name(open, 0, 0, &text), TW_USER_ERROR);
  tw_session_free(open);
}

TEST_F(CApi, MakesOutputsOrWritesThem) {
  const Floats x({1, 3});
  tw_tensor y = {};
  ASSERT_EQ(run(x.tensor, y), TW_OK) << tw_last_error();
  EXPECT_THAT(values_of(y), ElementsAre(1, 0, 2.5));
  EXPECT_EQ(y.dims[0], 1);
  EXPECT_EQ(y.strides[0], 3);
  void* const made = y.data;
  ASSERT_EQ(run(x.tensor, y), TW_OK);  // again, in place
  EXPECT_EQ(y.data, made);
  tw_tensor_release(&y);
  EXPECT_EQ(y.data, nullptr);
  tw_tensor_release(&y);
  Floats own({1, 3});
  ASSERT_EQ(run(x.tensor, own.tensor), TW_OK) << tw_last_error();
  EXPECT_THAT(values_of(own.tensor), ElementsAre(1, 0, 2.5));
  tw_tensor_release(&own.tensor);
  EXPECT_EQ(own.tensor.data, own.values.data());
}

TEST_F(CApi, TakesStridedAndEmptyInputs) {
  Floats x({3, 2});  // its transpose: rows 0 2 4 and 1 3 5
  const int64_t dims[] = {2, 3}, strides[] = {1, 2};
  x.tensor.dims = dims;
  x.tensor.strides = strides;
  tw_tensor y = {};
  ASSERT_EQ(run(x.tensor, y), TW_OK) << tw_last_error();
  EXPECT_THAT(values_of(y), ElementsAre(1, 0, 4.5, 2, 1, 5.5));
  tw_tensor_release(&y);
  const Floats none({0, 3});
  ASSERT_EQ(run(none.tensor, y), TW_OK) << tw_last_error();
  EXPECT_EQ(y.dims[0], 0);
  tw_tensor_release(&y);
}

TEST_F(CApi, ThreadsRunAtOnceAndKeepTheirOwnErrors) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      EXPECT_STREQ(tw_last_error(), "");
      const Floats wrong({t + 1, t + 4});
      for (int i = 0; i < 50; ++i) {
        const Floats x({t + 1, 3}, 2);
        tw_tensor y = {};
        EXPECT_EQ(run(x.tensor, y), TW_OK) << tw_last_error();
        std::vector<float> row = values_of(y);
        row.resize(3);
        EXPECT_THAT(row, ElementsAre(3, 1, 4.5));
        tw_tensor_release(&y);
        EXPECT_EQ(run(wrong.tensor, y), TW_USER_ERROR);
        EXPECT_THAT(tw_last_error(), HasSubstr("[" + std::to_string(t + 1) + ","));
      }
    });
  for (std::thread& t : threads) t.join();
}

TEST_F(CApi, RefusesWrongTensors) {
  const Floats x({2, 3});
  tw_tensor bad = x.tensor;
  bad.dtype = {TW_INT, 32, 1};
  expect_refused(bad, {}, "input 'x' is i32, wanted f32");
  bad.dtype = {TW_FLOAT, 32, 4};
  expect_refused(bad, {}, "input 'x' has type code 2 of 32 bits and 4 lanes");
  EXPECT_THAT(tw_last_error_hint(), HasSubstr("TW_FLOAT"));
  bad = x.tensor;
  bad.data = nullptr;
  expect_refused(bad, {}, "input 'x' has no data");
  bad.data = reinterpret_cast<char*>(x.tensor.data) + 1;
  expect_refused(bad, {}, "wanted a multiple of 4 bytes");
  bad = x.tensor;
  bad.dims = nullptr;
  expect_refused(bad, {}, "input 'x' has no dims");
  bad = x.tensor;
  for (const int32_t rank : {-1, 33}) {
    bad.rank = rank;
    expect_refused(bad, {}, "input 'x' has rank " + std::to_string(rank));
  }
  bad.rank = 1;
  expect_refused(bad, {}, "input 'x' has extents [2], wanted [N,3]");
  const int64_t negative[] = {-2, 3};
  bad = x.tensor;
  bad.dims = negative;
  expect_refused(bad, {}, "input 'x': ");
}

TEST_F(CApi, RefusesWrongOutputs) {
  const Floats x({2, 3});
  expect_refused(x.tensor, Floats({3, 3}).tensor, "output 'y' is f32[3,3]");
  Floats y({2, 3});
  const int64_t strides[] = {4, 1};
  tw_tensor gaps = y.tensor;
  gaps.strides = strides;
  expect_refused(x.tensor, gaps, "wanted f32[2,3] without gaps");
  tw_tensor integers = y.tensor;
  integers.dtype = {TW_INT, 32, 1};
  expect_refused(x.tensor, integers, "output 'y' is i32, wanted f32");
  tw_tensor same = x.tensor;
  expect_refused(x.tensor, same, "output 'y' overlaps input 'x'");
}

TEST_F(CApi, RefusesNullAndCounts) {
  const Floats x({2, 3});
  tw_tensor y = {};
  size_t count = 0;
  const char* text = nullptr;
  EXPECT_EQ(tw_session_run(nullptr, &x.tensor, 1, &y, 1), TW_USER_ERROR);
  EXPECT_STREQ(tw_last_error(), "argument 'session' is NULL");
  EXPECT_EQ(tw_session_run(session_, nullptr, 1, &y, 1), TW_USER_ERROR);
  EXPECT_STREQ(tw_last_error(), "argument 'inputs' is NULL");
  EXPECT_EQ(tw_session_run(session_, &x.tensor, 1, nullptr, 1), TW_USER_ERROR);
  EXPECT_STREQ(tw_last_error(), "argument 'outputs' is NULL");
  EXPECT_EQ(tw_session_run(session_, &x.tensor, 0, &y, 1), TW_USER_ERROR);
  EXPECT_STREQ(tw_last_error(), "0 inputs, the model has 1");
  EXPECT_EQ(tw_session_run(session_, &x.tensor, 1, &y, 2), TW_USER_ERROR);
  EXPECT_STREQ(tw_last_error(), "2 outputs, the model has 1");
  EXPECT_EQ(tw_session_input_count(nullptr, &count), TW_USER_ERROR);
  EXPECT_EQ(tw_session_input_count(session_, nullptr), TW_USER_ERROR);
  EXPECT_EQ(tw_session_input_name(session_, 1, &text), TW_USER_ERROR);
  EXPECT_STREQ(tw_last_error(), "there is no input 1, the model has 1");
  EXPECT_EQ(tw_session_input_dim_name(session_, 0, 2, &text), TW_USER_ERROR);
  EXPECT_STREQ(tw_last_error(), "input 'x' has no axis 2, its rank is 2");
  tw_tensor_release(nullptr);
  tw_session_free(nullptr);
}

TEST_F(CApi, RefusesWrongFilesAndOptions) {
  tw_session* none = nullptr;
  EXPECT_EQ(tw_session_load("none.onnx", nullptr, &none), TW_USER_ERROR);
  EXPECT_THAT(tw_last_error(), StartsWith("cannot read 'none.onnx'"));
  EXPECT_EQ(tw_session_load(folder_.write("text.onnx", "no model").c_str(), nullptr, &none),
            TW_USER_ERROR);
  EXPECT_EQ(tw_session_load(nullptr, nullptr, &none), TW_USER_ERROR);
  const std::string path = folder_.path("model.onnx");
  EXPECT_EQ(tw_session_load(path.c_str(), nullptr, nullptr), TW_USER_ERROR);
  tw_session_options options = {};
  EXPECT_EQ(tw_session_load(path.c_str(), &options, &none), TW_USER_ERROR);
  EXPECT_THAT(tw_last_error(), StartsWith("options have size 0"));
  options = {sizeof options, -1, 0};
  EXPECT_EQ(tw_session_load(path.c_str(), &options, &none), TW_USER_ERROR);
  EXPECT_EQ(none, nullptr);
}

TEST_F(CApi, OptionsMayBeOfALaterVersion) {
  struct {
    tw_session_options known;
    int64_t later;
  } options = {{sizeof options, 1, 0}, 0};
  const std::string path = folder_.path("model.onnx");
  tw_session* session = nullptr;
  EXPECT_EQ(tw_session_load(path.c_str(), &options.known, &session), TW_OK) << tw_last_error();
  tw_session_free(session);
  options.later = 1;
  EXPECT_EQ(tw_session_load(path.c_str(), &options.known, &session), TW_USER_ERROR);
  EXPECT_THAT(tw_last_error(), HasSubstr("set what this version lacks"));
}

TEST_F(CApi, HoldsTheMemoryLimit) {
  const tw_session_options options = {sizeof options, 1, 100};
  tw_session* small = nullptr;
  ASSERT_EQ(tw_session_load(folder_.path("model.onnx").c_str(), &options, &small), TW_OK);
  const Floats x({20, 3});
  tw_tensor y = {};
  EXPECT_EQ(tw_session_run(small, &x.tensor, 1, &y, 1), TW_USER_ERROR);
  EXPECT_THAT(tw_last_error(), HasSubstr("takes 240 bytes, of 100"));
  EXPECT_EQ(y.owner, nullptr);
  tw_session_free(small);
}

TEST_F(CApi, AProgramInCUsesIt) {
  const Ended e = shell(TW_USE " '" + folder_.path("model.onnx") + "' 2>&1");
  EXPECT_EQ(e.out, "1 x 2:32:1 2 [-1 3] N\n 2 0 1.5 1 1 0\n 2 0 1.5 1 1 0\n");
  EXPECT_EQ(e.code, 0);
}

TEST(Library, ExportsTheAbiOnly) {
  const std::string all = output_of("nm -D --defined-only --format=posix '" TW_LIBRARY "'");
  size_t begin = 0, count = 0;
  for (size_t end; (end = all.find('\n', begin)) != std::string::npos; begin = end + 1, ++count)
    EXPECT_THAT(all.substr(begin, end - begin), StartsWith("tw_"));
  EXPECT_EQ(std::to_string(count) + "\n",
            output_of("grep -c '^TW_API ' " TW_TEST_DIR "/../../tw/capi/tilewright.h"));
}

TEST(Library, CarriesItsOwnStandardLibrary) {
  const std::string needed = output_of("readelf -d '" TW_LIBRARY "'");
  EXPECT_THAT(needed, HasSubstr("libc.so"));
  EXPECT_THAT(needed, testing::Not(HasSubstr("NEEDED)             Shared library: [libstdc++")));
}

}  // namespace
}  // namespace tw
