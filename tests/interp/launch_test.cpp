#include "tw/interp/launch.h"

#include <gtest/gtest.h>

#include "tests/interp/run_text.h"
#include "tests/support/expect_error.h"

namespace tw::test {

namespace {

const char* const kText = R"(program add
dim N multiple_of 4
dim S
in a: f32[N]
in b: f32[N, 2]
out c: f32[N]
grid (cdiv(N, 4))

%0 = load a{pid0*4} : f32[4]
store %0 to c{pid0*4 + floordiv(S*S, 100)}
)";

struct Call {
  std::vector<Tensor> memory;  // before the views of it
  TensorView a = host(f32, {8}), b = host(f32, {8, 2}), c = host(f32, {8});
  std::vector<std::pair<std::string, int64_t>> dims{{"S", 3}};

  TensorView host(DType t, const std::vector<int64_t>& dims) {
    memory.push_back(host_tensor(t, dims));
    return memory.back();
  }
  void run() { interpret(parse(kText), {a, b}, {c}, dims); }
};

}  // namespace

TEST(Launch, RunsWhatFits) {
  Call call;
  for (int64_t i = 0; i < 8; ++i) set(call.a, i, static_cast<double>(i));
  call.run();
  EXPECT_EQ(get(call.c, 7), 7);
}

TEST(Launch, CountsTensors) {
  Call call;
  TW_EXPECT_ERROR(UserError, "'add' takes 2 inputs, got 1",
                  [&] { interpret(parse(kText), {call.a}, {call.c}, call.dims); });
  TW_EXPECT_ERROR(UserError, "takes 1 outputs, got 0; inout tensors count as outputs", [&] {
    interpret(parse(kText), {call.a, call.b}, {}, call.dims);
  });
}

TEST(Launch, ChecksDtypeAndRank) {
  Call call;
  call.a.dtype = i32;
  TW_EXPECT_ERROR(UserError, "tensor 'a' has dtype i32, wanted f32", [&] { call.run(); });
  call = Call();
  call.b = call.host(f32, {8});
  TW_EXPECT_ERROR(UserError, "tensor 'b' has rank 1, wanted 2", [&] { call.run(); });
}

TEST(Launch, ADimHasOneValue) {
  Call call;
  call.b = call.host(f32, {12, 2});
  TW_EXPECT_ERROR(UserError, "dim 'N' is 12 in tensor 'b', but 8 elsewhere", [&] { call.run(); });
  call = Call();
  call.b = call.host(f32, {8, 3});
  TW_EXPECT_ERROR(UserError, "tensor 'b' has extent 3 along axis 1, wanted 2", [&] { call.run(); });
}

TEST(Launch, ChecksPromisesAndNames) {
  Call call;
  call.a = call.c = call.host(f32, {6});
  call.b = call.host(f32, {6, 2});
  TW_EXPECT_ERROR(UserError, "dim 'N' is 6, but the program promises a multiple of 4",
                  [&] { call.run(); });
  call = Call();
  call.dims = {};
  TW_EXPECT_ERROR(UserError, "dim 'S' is the extent of no tensor; give its value with the call",
                  [&] { call.run(); });
  call.dims = {{"S", 1}, {"T", 1}};
  TW_EXPECT_ERROR(UserError, "'add' has no dim named 'T'", [&] { call.run(); });
  call.dims = {{"S", -1}};
  TW_EXPECT_ERROR(UserError, "dim 'S' is -1, wanted at least 0", [&] { call.run(); });
}

TEST(Launch, IndicesBeyondInt64AreRefused) {
  Call call;
  call.dims = {{"S", int64_t{1} << 33}};
  TW_EXPECT_ERROR(UserError, "a coordinate of 'c' ('S*S') may be more than 64 bits hold",
                  [&] { call.run(); });
}

TEST(Launch, OutputsOverlapNothing) {
  Call call;
  call.c = call.a;
  TW_EXPECT_ERROR(UserError, "output 'c' overlaps 'a' in memory", [&] { call.run(); });
  call = Call();
  call.c.strides = {0};
  TW_EXPECT_ERROR(UserError, "output 'c' overlaps itself", [&] { call.run(); });
  call = Call();
  call.c = call.b;
  call.c.dims = {8};
  call.c.strides = {2};
  TW_EXPECT_ERROR(UserError, "output 'c' overlaps 'b' in memory", [&] { call.run(); });
}

TEST(Launch, NeedsMemory) {
  Call call;
  call.a.data = nullptr;
  TW_EXPECT_ERROR(UserError, "tensor 'a' has no memory", [&] { call.run(); });
}

}  // namespace tw::test
