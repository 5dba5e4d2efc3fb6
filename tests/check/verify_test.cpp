#include "tw/check/verify.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tw/base/error.h"

#include "tests/support/expect_error.h"

namespace tw::check {
namespace {

using testing::HasSubstr;
using Views = std::vector<TensorView>;

void refuse_overlap(const Views& in, const Views& out) {
  if (in[0].data == out[0].data && in[0].count() > 0) throw UserError("output 'Y' overlaps 'X'");
}

/// Y = X / 3 on f32[m, n], one rounding.
void third(const Views& in, const Views& out) {
  refuse_overlap(in, out);
  for (int64_t i = 0; i < out[0].count(); ++i)
    set(out[0], i, static_cast<float>(get(in[0], i)) / 3.0f);
}

Reference third_reference(std::span<const TensorView> in) {
  Reference r{{.family = Family::elementwise}, {{}}};
  for (int64_t i = 0; i < in[0].count(); ++i) {
    r.outputs[0].value.push_back(get(in[0], i) / 3);
    r.outputs[0].sum_abs.push_back(std::fabs(get(in[0], i) / 3));
  }
  return r;
}

Subject subject(std::vector<int64_t> dims, decltype(Subject::run) run = third) {
  return {{{"X", f32, dims, false}, {"Y", f32, dims, true}}, std::move(run), third_reference};
}

std::string verdict_of(decltype(Subject::run) run) {
  Sweep sweep;
  for (int64_t n : {1, 5, 8, 17, 3, 6, 20}) sweep.add("third", subject({3, n}, run));
  return sweep.verdict();
}

TEST(Sweep, ARightKernelPasses) {
  Sweep sweep;
  for (auto dims :
       std::vector<std::vector<int64_t>>{{3, 5}, {1, 1}, {0, 4}, {4, 0}, {7}, {}, {2, 3, 4}})
    sweep.add("third", subject(dims));
  EXPECT_EQ(sweep.verdict(), "");
  EXPECT_GT(sweep.worst(), 0.05);
  EXPECT_LE(sweep.worst(), 0.5);
  EXPECT_THAT(sweep.worst_case(), HasSubstr("third, contiguous"));
  EXPECT_EQ(sweep.runs(), 7 * 6);
  EXPECT_EQ(sweep.elements(), 6 * (15 + 1 + 7 + 1 + 24));
}

/// Largest magnitude that X of a subject holds over all values; NaN when there was one.
double largest_input(Domain domain) {
  double most = 0;
  Sweep sweep;
  Subject s = subject({40, 8}, [&](const Views& in, const Views& out) {
    third(in, out);
    for (double x : to_doubles(in[0])) most = std::isnan(x) || std::abs(x) > most ? x : most;
  });
  s.arguments[0].domain = domain;
  sweep.add("third", s);
  return std::abs(most);
}

TEST(Sweep, InputsKeepToTheirDomain) {
  EXPECT_TRUE(std::isnan(largest_input(Domain::any)));
  EXPECT_GT(largest_input(Domain::finite), 1000);
  EXPECT_LE(largest_input(Domain::finite), 0x1p20);
  EXPECT_LT(largest_input(Domain::small), 1);
}

TEST(Sweep, EveryOutputHasTheBoundOfItsType) {
  Sweep sweep({.values = {Values::uniform}, .layouts = {}, .refuses_aliases = false});
  const Subject two = {
      {{"X", f32, {300}, false}, {"Y", f32, {300}, true}, {"Z", bf16, {300}, true}},
      [](const Views& in, const Views& out) {
        third(in, {out[0]});
        // Off by a part of an ulp of Z, many of Y.
        set(out[0], 7, get(out[0], 7) * (1 + 0x1p-12));
        for (int64_t i = 0; i < 300; ++i) set(out[1], i, get(out[0], i));
      },
      [](std::span<const TensorView> in) {
        Reference r = third_reference(in);
        r.accuracy.out = bf16;
        r.outputs.push_back(r.outputs[0]);
        return r;
      }};
  sweep.add("two", two);
  EXPECT_THAT(sweep.verdict(),
              testing::AllOf(HasSubstr("uniform: Y[7] is"), testing::Not(HasSubstr(": Z["))));
}

TEST(Sweep, NothingRunIsNoPass) { EXPECT_EQ(Sweep().verdict(), "nothing was run\n"); }

TEST(Sweep, SeesAWrongElement) {
  EXPECT_THAT(verdict_of([](const Views& in, const Views& out) {
                third(in, out);
                if (out[0].count() > 16) set(out[0], 16, get(out[0], 16) + 0.001);
              }),
              testing::AllOf(HasSubstr("third, contiguous uniform: Y[2,0] is"),
                             HasSubstr("times the allowed error")));
}

TEST(Sweep, SeesIgnoredStrides) {
  EXPECT_THAT(verdict_of([](const Views& in, const Views& out) {
                Views dense = in;
                dense[0].strides = contiguous_strides(in[0].dims);
                third(dense, out);
              }),
              HasSubstr("third, padded uniform"));
}

TEST(Sweep, SeesWritesOutside) {
  EXPECT_THAT(verdict_of([](const Views& in, const Views& out) {
                third(in, out);
                static_cast<float*>(out[0].data)[out[0].count()] = 0;
              }),
              HasSubstr("lies in no element and was written"));
}

TEST(Sweep, SeesElementsNotWritten) {
  EXPECT_THAT(verdict_of([](const Views& in, const Views& out) {
                const double last = out[0].count() > 0 ? get(out[0], out[0].count() - 1) : 0;
                third(in, out);
                if (out[0].count() > 20) set(out[0], out[0].count() - 1, last);
              }),
              HasSubstr("nan, wanted"));
}

TEST(Sweep, SeesDependenceOnOldOutputs) {
  EXPECT_THAT(verdict_of([](const Views& in, const Views& out) {
                const bool fresh = std::isnan(get(out[0], 0));
                third(in, out);
                if (!fresh) set(out[0], 0, std::nextafter(static_cast<float>(get(out[0], 0)), 9.f));
              }),
              HasSubstr("a second run over other poison differs"));
}

TEST(Sweep, SeesChangedInputs) {
  EXPECT_THAT(verdict_of([](const Views& in, const Views& out) {
                third(in, out);
                set(in[0], 0, 5);
              }),
              HasSubstr("an input was changed"));
}

TEST(Sweep, SeesAcceptedAliases) {
  EXPECT_THAT(verdict_of([](const Views& in, const Views& out) {
                for (int64_t i = 0; i < out[0].count(); ++i)
                  set(out[0], i, static_cast<float>(get(in[0], i)) / 3.0f);
              }),
              HasSubstr("an output that overlaps an input was accepted"));
}

TEST(Sweep, SeesNanSwallowed) {
  EXPECT_THAT(verdict_of([](const Views& in, const Views& out) {
                third(in, out);
                for (int64_t i = 0; i < out[0].count(); ++i)
                  if (std::isnan(get(out[0], i))) set(out[0], i, 0);
              }),
              HasSubstr("contiguous special"));
}

TEST(Sweep, ABoundThatNothingComesNearIsVacuous) {
  Sweep sweep;
  Subject loose = subject({4, 4});
  loose.reference = [](std::span<const TensorView> in) {
    Reference r = third_reference(in);
    for (double& s : r.outputs[0].sum_abs) s = 1e6;
    return r;
  };
  sweep.add("third", loose);
  EXPECT_THAT(sweep.verdict(), HasSubstr("vacuous: the largest error is"));
}

TEST(Sweep, ExactFamiliesMustBeExact) {
  Subject copy = {{{"X", f32, {300}, false}, {"Y", f32, {300}, true}},
                  [](const Views& in, const Views& out) {
                    refuse_overlap(in, out);
                    for (int64_t i = 0; i < 300; ++i) set(out[0], i, get(in[0], i));
                  },
                  [](std::span<const TensorView> in) {
                    Reference r{{.family = Family::exact}, {{}}};
                    for (int64_t i = 0; i < 300; ++i) {
                      r.outputs[0].value.push_back(get(in[0], i));
                      r.outputs[0].sum_abs.push_back(0);
                    }
                    return r;
                  }};
  Sweep good;
  good.add("copy", copy);
  EXPECT_EQ(good.verdict(), "");
  EXPECT_EQ(good.worst(), 0);
  copy.run = [](const Views& in, const Views& out) {
    refuse_overlap(in, out);
    for (int64_t i = 0; i < 300; ++i) set(out[0], i, get(in[0], i) + 0.0);
  };
  Sweep bad;
  bad.add("copy", copy);
  EXPECT_THAT(bad.verdict(), HasSubstr("is 0, wanted -0: inf times"));
}

TEST(Sweep, ManyFaultsAreCounted) {
  EXPECT_THAT(verdict_of([](const Views&, const Views&) {}), HasSubstr("more faults"));
}

TEST(Sweep, AReferenceOfTheWrongSizeIsABug) {
  Subject s = subject({4});
  s.reference = [](std::span<const TensorView>) {
    return Reference{{.family = Family::elementwise}, {{}}};
  };
  TW_EXPECT_ERROR(InternalError, "the reference of Y has 0 elements, wanted 4", [&] {
    Sweep sweep;
    sweep.add("third", s);
  });
}

}  // namespace
}  // namespace tw::check
