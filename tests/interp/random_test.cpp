#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "tw/interp/interpreter.h"
#include "tw/ir/print.h"
#include "tw/ir/verify.h"

#include "tests/support/random_program.h"

namespace tw::test {

namespace {

constexpr uint64_t kPrograms = 2000;

bool contains(const Scalar& bounded, const Scalar& exact) {
  if (bounded.undecided) return true;
  if (std::isnan(bounded.f) || std::isnan(exact.f))
    return std::isnan(bounded.f) && std::isnan(exact.f);
  if (bounded.bound > 0) return std::fabs(bounded.f - exact.f) <= bounded.bound;
  return bounded.i == exact.i && bounded.f == exact.f &&
         std::signbit(bounded.f) == std::signbit(exact.f);
}

std::set<Opcode> opcodes(const Program& p) {
  std::set<Opcode> seen;
  walk(p, [&](const Op& op) { seen.insert(op.code); });
  return seen;
}

/// Named traits of a program and its data that the set must have many of.
std::vector<std::string> features(const RandomProgram& r) {
  std::vector<std::string> f;
  const std::set<Opcode> ops = opcodes(r.program);
  bool all = true;
  for (Opcode c : {Opcode::for_, Opcode::if_, Opcode::dot, Opcode::reduce})
    all = all && ops.count(c) > 0;
  if (all) f.push_back("loop+if+dot+reduce");
  bool empty = false, negative = false, fixed = false, reads_output = false, custom = false;
  int stores = 0;
  for (const auto& [name, value] : r.dims) empty = empty || value == 0;
  walk(r.program, [&](const Op& op) {
    if (op.code == Opcode::reduce)
      custom = custom || op.as<ReduceAttr>().combiner == Combiner::custom;
    if (op.code != Opcode::load && op.code != Opcode::store) return;
    const View& v = op.as<ViewAttr>().view;
    stores += op.code == Opcode::store;
    fixed = fixed || v.axes.size() < v.origin.size();
    reads_output = reads_output ||
                   (op.code == Opcode::load && r.program.params[v.param].kind != ParamKind::in);
    for (const Expr& e : v.origin)
      negative = negative || (e.is_constant() && e.constant() < 0) ||
                 (e.kind() == Expr::Kind::add && e.rhs().is_constant() && e.rhs().constant() < 0);
  });
  if (empty) f.push_back("empty extent");
  if (negative) f.push_back("negative offset");
  if (fixed) f.push_back("fixed axis");
  if (reads_output) f.push_back("reads what it stored");
  if (custom) f.push_back("custom combiner");
  if (stores > 2) f.push_back("several stores");
  f.push_back(r.special_free ? "plain data" : "special data");
  for (size_t i = 0; i < r.tensors.size(); ++i) {
    static const char* const layouts[] = {"contiguous", "transposed", "gaps",
                                          "reversed",   "stride 0",   "shifted"};
    f.push_back(layouts[static_cast<int>(r.tensors[i].layout)]);
    f.push_back(name(r.tensors[i].dtype));
    if (r.program.params[i].kind == ParamKind::inout) f.push_back("inout");
  }
  return f;
}

}  // namespace

TEST(RandomProgram, IsTheSameForTheSameSeed) {
  EXPECT_EQ(print(random_program(5).program), print(random_program(5).program));
  EXPECT_NE(print(random_program(5).program), print(random_program(6).program));
}

TEST(RandomProgram, IsValidAndReadsBack) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Program p = random_program(seed).program;
    ASSERT_NO_THROW(verify(p, "random")) << print(p);
    EXPECT_EQ(print(parse(print(p))), print(p));
  }
}

TEST(RandomProgram, CoversOpsAndFeatures) {
  std::map<std::string, int> ops, traits;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const RandomProgram r = random_program(seed);
    for (Opcode c : opcodes(r.program)) ++ops[info(c).name];
    const std::vector<std::string> list = features(r);
    for (const std::string& f : std::set<std::string>(list.begin(), list.end())) ++traits[f];
  }
  std::string report;
  for (const auto& [name, n] : ops) report += fmt::format("{} {}, ", name, n);
  for (const auto& [name, n] : traits) report += fmt::format("\n  {}: {}", name, n);
  fmt::print("of {} programs: {}\n", kPrograms, report);
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto code = static_cast<Opcode>(i);
    if (code >= Opcode::par) continue;    // lowered ops, the end of the table: made by passes only
    if (code == Opcode::print) continue;  // says much, computes nothing
    EXPECT_GE(ops[info(code).name], 50) << info(code).name;
  }
  EXPECT_GE(traits["loop+if+dot+reduce"], 600);
  for (const char* f : {"empty extent", "negative offset", "fixed axis", "reads what it stored",
                        "custom combiner", "several stores", "plain data", "special data",
                        "transposed", "gaps", "reversed", "stride 0", "shifted", "inout"})
    EXPECT_GE(traits[f], 100) << f;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (is_packed(t) || t == e8m0) continue;  // tests/emit/packed_test.cpp has those
    EXPECT_GE(traits[name(t)], 50) << name(t);
  }
}

TEST(Random, BoundsHoldTheExactRun) {
  int64_t undecided = 0, elements = 0, exact_elements = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const RandomProgram r = random_program(seed);
    const Arguments a = arguments(r), b = arguments(r);
    const Interpretation exact = interpret(r.program, a.inputs, a.outputs, r.dims);
    const Interpretation bounded =
        interpret(r.program, b.inputs, b.outputs, r.dims, {InterpretMode::bounded, {}});
    for (size_t k = 0; k < exact.outputs.size(); ++k)
      for (size_t i = 0; i < exact.outputs[k].size(); ++i) {
        const Scalar& x = exact.outputs[k][i];
        const Scalar& y = bounded.outputs[k][i];
        exact_elements += !y.undecided && y.bound == 0;
        ASSERT_TRUE(contains(y, x))
            << "seed " << seed << ", output " << k << ", element " << i << ": " << x.f << " " << x.i
            << " is not " << y.f << " " << y.i << " +- " << y.bound << "\n"
            << print(r.program);
      }
    undecided += bounded.undecided();
    elements += bounded.count();
    for (const Guarded& t : b.tensors) ASSERT_EQ(t.damage(), "") << "seed " << seed;
  }
  fmt::print("{} elements: {:.2f} % exact, {:.3f} % undecided\n", elements,
             100.0 * static_cast<double>(exact_elements) / static_cast<double>(elements),
             100.0 * static_cast<double>(undecided) / static_cast<double>(elements));
  EXPECT_LT(static_cast<double>(undecided), 0.01 * static_cast<double>(elements));
  EXPECT_LT(exact_elements, elements * 99 / 100);
}

TEST(Random, InstancesMayRunInAnyOrder) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomProgram r = random_program(seed);
    const Arguments a = arguments(r), b = arguments(r);
    interpret(r.program, a.inputs, a.outputs, r.dims);
    interpret(r.program, b.inputs, b.outputs, r.dims, {InterpretMode::exact, seed});
    for (size_t k = 0; k < a.outputs.size(); ++k) {
      const Tensor x = copy(a.outputs[k]), y = copy(b.outputs[k]);
      const auto size = static_cast<size_t>(x.count() * bytes(x.dtype()));
      ASSERT_EQ(std::memcmp(x.view().data, y.view().data, size), 0) << "seed " << seed;
    }
  }
}

}  // namespace tw::test
