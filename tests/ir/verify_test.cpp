#include "tw/ir/verify.h"

#include <gtest/gtest.h>

#include "tw/base/error.h"
#include "tw/ir/print.h"

#include "tests/ir/corpus.h"
#include "tests/support/expect_error.h"

namespace tw {
namespace {

Op& first(Program& p, Opcode code) {
  Op* found = nullptr;
  walk(p, [&](Op& op) {
    if (op.code == code && found == nullptr) found = &op;
  });
  return *found;
}

struct Break {
  const char* error;
  void (*apply)(Program& p);
};

// One entry a rule, on every_op.tw.
const Break kBreaks[] = {
    {"program name '3' is no identifier", [](Program& p) { p.name = "3"; }},
    {"dim 'a b' is no identifier", [](Program& p) { p.dims[0].name = "a b"; }},
    {"dim 'pid0' has a reserved name", [](Program& p) { p.dims[0].name = "pid0"; }},
    {"two dims are named 'N'", [](Program& p) { p.dims[1].name = "N"; }},
    {"dim 'S' is a multiple of -1", [](Program& p) { p.dims[1].multiple_of = -1; }},
    {"parameter '' is no identifier", [](Program& p) { p.params[0].name = ""; }},
    {"two parameters are named 'Q'", [](Program& p) { p.params[0].name = "Q"; }},
    {"value name 'a.b' is no identifier", [](Program& p) { p.values[3].name = "a.b"; }},
    {"parameter 'X' has 9 axes, more than 8",
     [](Program& p) { p.params[0].dims.assign(9, Expr(1)); }},
    {"extents of parameter 'X' must be dims or constants >= 0",
     [](Program& p) { p.params[0].dims[0] = -1; }},
    {"parameter 'X' is not known at launch: it uses pid0",
     [](Program& p) { p.params[0].dims[0] = Expr::symbol(SymbolKind::pid, 0); }},
    {"parameter 'X' uses unknown dim 7",
     [](Program& p) { p.params[0].dims[0] = Expr::symbol(SymbolKind::dim, 7); }},
    {"parameter 'X' has an unknown dtype",
     [](Program& p) { p.params[0].dtype = static_cast<DType>(99); }},
    {"parameters that a call gives come first, then workspace, then scratch",
     [](Program& p) { p.params[0].kind = ParamKind::scratch; }},
    {"parameters that a call gives come first, then workspace, then scratch",
     [](Program& p) { p.params[0].kind = ParamKind::workspace; }},
    {"workspace 'T' holds elements of less than a byte",
     [](Program& p) {
       p.params[4].kind = ParamKind::workspace;
       p.params[4].dtype = i4;
     }},
    {"parameter 99 of the ticket is out of range", [](Program& p) { p.ticket = 99; }},
    {"'X' counts instances: wanted workspace u64[1]", [](Program& p) { p.ticket = 0; }},
    {"touches 'Z', which counts instances",
     [](Program& p) {
       p.params[3] = {"Z", ParamKind::workspace, u64, {1}, {}};
       p.ticket = 3;
     }},
    {"an extent of scratch 'T' is a dim",
     [](Program& p) { p.params[4].dims[0] = Expr::symbol(SymbolKind::dim, 0); }},
    {"scratch u32[0,16] has an extent of 0", [](Program& p) { p.params[4].dims[0] = 0; }},
    {"scratch u32[1048577,16] makes more than 67108864 bytes of scratch; let more instances",
     [](Program& p) { p.params[4].dims[0] = (1 << 20) + 1; }},
    {"the grid has 0 axes, not 1 to 3", [](Program& p) { p.grid.clear(); }},
    {"the grid is not known at launch: it uses i0",
     [](Program& p) { p.grid[0] = Expr::symbol(SymbolKind::loop, 0) + 1; }},
    {"the body of a program has no arguments", [](Program& p) { p.body.yields = {0}; }},
    {"'transpose' needs PermAttr",
     [](Program& p) { first(p, Opcode::transpose).attr = NoneAttr{}; }},
    {"'add' has 1 operands, not 2", [](Program& p) { first(p, Opcode::add).in.pop_back(); }},
    {"'neg' has 0 results, not 1", [](Program& p) { first(p, Opcode::neg).out.clear(); }},
    {"'if' has 1 regions, not 2", [](Program& p) { first(p, Opcode::if_).regions.pop_back(); }},
    {"'add' has 1 regions, not 0", [](Program& p) { first(p, Opcode::add).regions.resize(1); }},
    {"value id 999 is out of range", [](Program& p) { first(p, Opcode::add).in[0] = 999; }},
    {"value id 0 is defined twice", [](Program& p) { p.body.ops[1].out[0] = 0; }},
    {"value id 40 is used where its definition does not reach",
     [](Program& p) { first(p, Opcode::add).in[0] = 40; }},
    {"value id 5 is used where its definition does not reach",
     [](Program& p) { first(p, Opcode::lt).in[0] = 5; }},
    {"unknown dtype 99", [](Program& p) { p.values[3].type.dtype = static_cast<DType>(99); }},
    {"tile extents [0] must be at least 1", [](Program& p) { p.values[3].type.shape = {0}; }},
    {"i0 is not in scope",
     [](Program& p) {
       first(p, Opcode::index).attr = IndexAttr{Expr::symbol(SymbolKind::loop, 0)};
     }},
    {"pid3 is not in scope",
     [](Program& p) {
       first(p, Opcode::index).attr = IndexAttr{Expr::symbol(SymbolKind::pid, 3)};
     }},
    {"loop id 1 is not below 1", [](Program& p) { p.loops = 1; }},
    {"two loops have id 0",
     [](Program& p) { first(p, Opcode::for_).regions[0].ops[0].as<LoopAttr>().loop = 0; }},
    {"'for': the step is not proved to be at least 1",
     [](Program& p) { first(p, Opcode::for_).as<LoopAttr>().step = 0; }},
    {"'for': first values, arguments, yields and results must have equal types",
     [](Program& p) { std::swap(first(p, Opcode::for_).out[0], first(p, Opcode::for_).out[1]); }},
    {"'while': first values, arguments, yields and results must have equal types",
     [](Program& p) { first(p, Opcode::while_).regions[0].yields.pop_back(); }},
    {"'while': its first carried value must be a b1[], the condition",
     [](Program& p) {
       Op& op = first(p, Opcode::while_);
       op.in.erase(op.in.begin());
       op.out.erase(op.out.begin());
       op.regions[0].args.erase(op.regions[0].args.begin());
       op.regions[0].yields.erase(op.regions[0].yields.begin());
     }},
    {"'if': both sides must yield the types of the results",
     [](Program& p) { first(p, Opcode::if_).regions[0].yields.pop_back(); }},
    {"'par': axis 5 of a grid of 3 axes",
     [](Program& p) { first(p, Opcode::par).as<AxisAttr>().axis = 5; }},
    {"'contract' has 2 regions, not 3",
     [](Program& p) { first(p, Opcode::contract).regions.pop_back(); }},
    {"'contract': the regions of A and B take nothing and yield one tile",
     [](Program& p) { first(p, Opcode::contract).regions[1].yields.clear(); }},
    {"'contract': the last region takes the sum and yields nothing",
     [](Program& p) {
       Region& r = first(p, Opcode::contract).regions[2];
       r.yields = r.args;
     }},
    {"dot of f32[16,8] and f32[4,8]: inner extents differ",
     [](Program& p) {
       p.values[first(p, Opcode::contract).regions[1].yields[0]].type.shape = {4, 8};
     }},
    {"'load': parameter 9 does not exist",
     [](Program& p) { first(p, Opcode::load).as<ViewAttr>().view.param = 9; }},
    {"'load': the view has 1 coordinates, 'X' has 2 axes",
     [](Program& p) { first(p, Opcode::load).as<ViewAttr>().view.origin.pop_back(); }},
    {"'load': the axes of a view of 'X' must ascend and exist",
     [](Program& p) {
       first(p, Opcode::load).as<ViewAttr>().view.axes = {1, 0};
     }},
    {"'load': f32[16,8] does not fit a view of 'X', f32 of 1 axes",
     [](Program& p) { first(p, Opcode::load).as<ViewAttr>().view.axes = {0}; }},
    {"'load': a constant of f32 must be a float",
     [](Program& p) { first(p, Opcode::load).as<ViewAttr>().pad = Number{}; }},
    {"'store': 'Z' is read only", [](Program& p) { p.params[3].kind = ParamKind::in; }},
    {"'store': a store has no pad",
     [](Program& p) { first(p, Opcode::store).as<ViewAttr>().pad.i = 1; }},
    {"'gather': parameter 9 does not exist",
     [](Program& p) { first(p, Opcode::gather).as<PlaceAttr>().view.param = 9; }},
    {"'gather': 3 operands, not 2",
     [](Program& p) { first(p, Opcode::gather).as<PlaceAttr>().masked = false; }},
    {"'gather': axis 1 of 'X' has an origin and a coordinate",
     [](Program& p) { first(p, Opcode::gather).as<PlaceAttr>().view.origin[1] = 3; }},
    {"'gather' at coordinates f32[16,8], wanted i32 or i64; cast them",
     [](Program& p) { first(p, Opcode::gather).in[0] = 0; }},
    {"'gather' needs a b1 mask, got i32[16,1]; compare with ne(x, 0)",
     [](Program& p) {
       Op& op = first(p, Opcode::gather);
       op.in[2] = op.in[0];
     }},
    {"'gather' on shapes [16,1] and [8]: ranks differ",
     [](Program& p) { first(p, Opcode::gather).in[1] = first(p, Opcode::store).in[0]; }},
    {"'gather': its type is f32[16,4], the operands give f32[16,8]",
     [](Program& p) {
       p.values[first(p, Opcode::gather).out[0]].type.shape = {16, 4};
     }},
    {"'scatter': a scatter has no pad",
     [](Program& p) { first(p, Opcode::scatter).as<PlaceAttr>().pad.i = 1; }},
    {"'scatter': b1[16,8] does not fit 'Y'",
     [](Program& p) {
       Op& op = first(p, Opcode::scatter);
       op.in[2] = op.in[3];
     }},
    {"'atomic': 2 results",
     [](Program& p) {
       Op& op = first(p, Opcode::atomic);
       op.out.push_back(p.new_value(p.type(op.out[0]), {}));
     }},
    {"atomic and on elements of f32; wanted i32, i64, u32 or u64",
     [](Program& p) { first(p, Opcode::atomic).as<AtomicAttr>().op = AtomicOp::and_; }},
    {"'atomic': 2 operands, not 3", [](Program& p) { first(p, Opcode::atomic).in.pop_back(); }},
    {"'print' has 0 operands, not 1", [](Program& p) { p.body.ops.back().in.pop_back(); }},
    {"'full': a constant of f32 must be a float",
     [](Program& p) { first(p, Opcode::full).as<FullAttr>().value = Number{}; }},
    {"'iota': axis 2 of i64[16,8]",
     [](Program& p) { first(p, Opcode::iota).as<AxisAttr>().axis = 2; }},
    {"'index': gives one integer, not f32[1,1]", [](Program& p) { p.values[10].type.dtype = f32; }},
    {"'cast': only SR takes a seed",
     [](Program& p) { first(p, Opcode::cast).as<CastAttr>().seed = 1; }},
    {"'reduce max' along axis 2 of f32[16,8], which has 2 axes",
     [](Program& p) { first(p, Opcode::reduce).as<ReduceAttr>().axis = 2; }},
    {"'reduce': the combiner must yield one value per tile",
     [](Program& p) { p.body.ops[30].regions[0].yields.pop_back(); }},
    {"'reduce': the combiner takes the left, then the right elements",
     [](Program& p) {
       std::swap(p.body.ops[30].regions[0].args[0], p.body.ops[30].regions[0].args[1]);
     }},
    {"'keep': its type is f32[16,1], the operands give f32[16,8]",
     [](Program& p) {
       p.values[first(p, Opcode::keep).out[0]].type.shape = {16, 1};
     }},
};

TEST(Verify, EachRuleIsBrokenOnce) {
  const std::string text = test::read_text(TW_TEST_DIR "/corpus/every_op.tw");
  for (const Break& b : kBreaks) {
    Program p = parse(text, "every_op.tw");
    b.apply(p);
    TW_EXPECT_ERROR(InternalError, b.error, [&] { verify(p, "break"); });
  }
}

TEST(Verify, NamesThePassThePlaceAndShowsTheProgram) {
  Program p = parse(test::read_text(TW_TEST_DIR "/corpus/gemm.tw"), "gemm.tw");
  first(p, Opcode::add).in.pop_back();
  try {
    verify(p, "fuse");
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_EQ(std::string(e.what()),
              "gemm.tw:20: error: internal error: after pass 'fuse': 'add' has 1 operands, not 2");
    EXPECT_NE(e.reproducer().find("%8 = add %acc.5 : f32[64,128]"), std::string::npos);
  }
}

TEST(Verify, ShowsThatAProgramCannotBePrinted) {
  Program p = parse(test::read_text(TW_TEST_DIR "/corpus/gemm.tw"));
  first(p, Opcode::load).attr = NoneAttr{};
  try {
    verify(p, "x");
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_NE(e.reproducer().find("cannot be printed"), std::string::npos) << e.reproducer();
  }
}

}  // namespace
}  // namespace tw
