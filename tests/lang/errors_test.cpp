// Wrong programs and what their authors read. golden/errors.txt holds, for each, the line of the
// message (counted from the line of the case) and the message.
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <regex>
#include <sstream>

#include "tw/base/error.h"
#include "tw/lang/lang.h"

#include "tests/lang/error_case.h"
#include "tests/support/golden.h"

namespace tw {
namespace {

using test::Case;

// Places in the text of a message, counted from the line of the case too.
std::string with_relative_places(const std::string& text, int line) {
  static const std::regex place("[^ ]*errors_test.cpp:([0-9]+)");
  std::smatch m;
  if (!std::regex_search(text, m, place)) return text;
  return fmt::format("{}+{}{}", m.prefix().str(), std::stoi(m[1]) - line, m.suffix().str());
}

// Lines of at most 96 columns, the later ones indented.
std::string wrapped(const std::string& text) {
  std::string out;
  size_t column = 0;
  std::istringstream words(text);
  for (std::string word; words >> word; column += word.size() + 1) {
    const bool fits = column == 0 || column + word.size() < 96;
    out += column == 0 ? "" : fits ? " " : "\n    ";
    if (!fits) column = 4;
    out += word;
  }
  return out + "\n";
}

std::string message(const Case& c) {
  Trace k("wrong");
  try {
    c.run(k);
  } catch (const UserError& e) {
    const std::string file = e.at().known() ? e.at().file : "errors_test.cpp";
    const int line = e.at().known() ? static_cast<int>(e.at().line) - c.line : -1;
    const std::string place = file.ends_with("errors_test.cpp") ? fmt::format("+{}", line) : file;
    const std::string text = e.message() + (e.hint().empty() ? "" : "; " + e.hint());
    return wrapped(fmt::format("{} {}: {}", c.name, place, with_relative_places(text, c.line)));
  }
  return fmt::format("{}: NOT CAUGHT\n", c.name);
}

const std::vector<Case> kOperands = {
    {"mixed dtypes", __LINE__,
     [](Trace& k) {
       Tile a = k.zeros(f32, {64, 64}), b = k.zeros(f16, {64, 64});
       Tile c = a + b;
     }},
    {"mixed dtypes in +=", __LINE__,
     [](Trace& k) {
       Tile a = k.zeros(f32, {64, 64});
       a += k.zeros(bf16, {64, 64});
     }},
    {"rank mismatch", __LINE__,
     [](Trace& k) {
       Tile a = k.zeros(f32, {128, 128}), b = k.zeros(f32, {128});
       Tile c = 2.0f * a + b;
     }},
    {"extents differ", __LINE__,
     [](Trace& k) {
       Tile c = k.zeros(f32, {8, 48}) * k.zeros(f32, {8, 80});
     }},
    {"fraction on integers", __LINE__, [](Trace& k) { Tile c = k.zeros(u32, {8}) * 0.5; }},
    {"constant too large", __LINE__, [](Trace& k) { Tile c = k.zeros(u8, {8}) + 256; }},
    {"negative on unsigned", __LINE__, [](Trace& k) { Tile c = -1 + k.zeros(u32, {8}); }},
    {"constant overflows f16", __LINE__, [](Trace& k) { Tile c = k.zeros(f16, {8}) * 1e6; }},
    {"infinity in e4m3", __LINE__, [](Trace& k) { Tile c = k.full(e4m3, {8}, INFINITY); }},
    {"NaN on integers", __LINE__, [](Trace& k) { Tile c = k.full(i32, {8}, NAN); }},
    {"arithmetic on a mask", __LINE__, [](Trace& k) { Tile c = k.zeros(b1, {8}) + 1; }},
    {"2 in a mask", __LINE__, [](Trace& k) { Tile c = k.zeros(b1, {8}) & 2; }},
    {"index beside a mask", __LINE__, [](Trace& k) { Tile c = k.zeros(b1, {8}) & k.dim("N"); }},
    {"bits of floats", __LINE__, [](Trace& k) { Tile c = k.zeros(f32, {8}) & 1; }},
    {"remainder of floats", __LINE__, [](Trace& k) { Tile c = k.zeros(f32, {8}) % 2; }},
    {"exp of integers", __LINE__, [](Trace& k) { Tile c = exp(k.iota({8}, 0)); }},
    {"arithmetic in fp8", __LINE__, [](Trace& k) { Tile c = k.zeros(e4m3, {8}) * 2; }},
    {"no tile at all", __LINE__, [](Trace& k) { Tile c = k.dim("N") * 1.5; }},
    {"not of a number", __LINE__, [](Trace&) { Tile c = ~Arg(3); }},
    {"two programs", __LINE__,
     [](Trace& k) {
       Trace q("other");
       Tile a = k.zeros(f32, {8}), b = q.zeros(f32, {8});
       Tile c = a + b;
     }},
    {"assignment from another program", __LINE__,
     [](Trace& k) {
       Trace q("other");
       Tile a = k.zeros(f32, {8});
       a = q.zeros(f32, {8});
     }},
    {"index of another program", __LINE__,
     [](Trace& k) {
       Trace q("other");
       Tile a = k.zeros(f32, {8}) + q.dim("N");
     }},
    {"indices of two programs", __LINE__,
     [](Trace& k) {
       Trace q("other");
       Index i = k.dim("N") + q.dim("N");
       Tile a = k.zeros(f32, {8}) + i;
     }},
    {"index constant too large", __LINE__, [](Trace& k) { k.range(18446744073709551615u); }},
    {"index grows without end", __LINE__,
     [](Trace& k) {
       std::vector<Index> sums{k.dim("N")};
       for (int i = 0; i < 99; ++i) sums.push_back(sums.back() * sums.back() + i);
       k.range(sums.back());
     }},
    {"where without a mask", __LINE__,
     [](Trace& k) {
       Tile a = k.zeros(f32, {8});
       Tile c = where(a, a, 0);
     }},
    {"where of two numbers", __LINE__,
     [](Trace& k) { Tile c = where(k.zeros(b1, {8}), 1.f, 0.f); }},
    {"where mixes dtypes", __LINE__,
     [](Trace& k) {
       Tile mask = k.zeros(b1, {8});
       Tile c = where(mask, k.zeros(f32, {8}), k.zeros(f16, {8}));
     }},
};

const std::vector<Case> kShapes = {
    {"empty tile", __LINE__,
     [](Trace& k) {
       k.zeros(f32, {0, 8});
     }},
    {"huge tile", __LINE__,
     [](Trace& k) {
       k.zeros(f32, {1 << 20, 1 << 20});
     }},
    {"broadcast makes a huge tile", __LINE__,
     [](Trace& k) {
       Tile c = k.zeros(f32, {1, 1 << 20}) + k.zeros(f32, {1 << 20, 1});
     }},
    {"full does not fit", __LINE__, [](Trace& k) { k.full(i8, {8}, 128); }},
    {"iota along no axis", __LINE__, [](Trace& k) { k.iota({8}, 1); }},
    {"reshape changes the count", __LINE__,
     [](Trace& k) {
       reshape(k.zeros(f32, {6, 8}), {7, 7});
     }},
    {"row of a matrix", __LINE__,
     [](Trace& k) {
       as_row(k.zeros(f32, {6, 8}));
     }},
    {"transpose of three axes", __LINE__,
     [](Trace& k) {
       transpose(k.zeros(f32, {2, 3, 4}));
     }},
    {"transpose names an axis twice", __LINE__,
     [](Trace& k) {
       transpose(k.zeros(f32, {2, 3}), {1, 1});
     }},
    {"broadcast of what is not 1", __LINE__,
     [](Trace& k) {
       broadcast(k.zeros(f32, {2, 3}), {4, 3});
     }},
    {"bitcast of another size", __LINE__, [](Trace& k) { bitcast(k.zeros(f32, {2}), u16); }},
    {"rounding to an integer", __LINE__,
     [](Trace& k) { cast(k.zeros(f32, {2}), i32, {.rounding = Rounding::RU}); }},
    {"seed without SR", __LINE__, [](Trace& k) { cast(k.zeros(f32, {2}), f16, {.seed = 3}); }},
    {"extent of no axis", __LINE__, [](Trace& k) { k.zeros(f32, {2}).extent(1); }},
    {"inner extents of dot", __LINE__,
     [](Trace& k) {
       Tile a = k.zeros(f16, {128, 64}), b = k.zeros(f16, {32, 128});
       dot(a, b, k.zeros(f32, {128, 128}));
     }},
    {"accumulator of dot", __LINE__,
     [](Trace& k) {
       Tile a = k.zeros(f16, {128, 64}), b = k.zeros(f16, {64, 128});
       dot(a, b, k.zeros(f16, {128, 128}));
     }},
    {"shape of the accumulator", __LINE__,
     [](Trace& k) {
       dot(k.zeros(f32, {4, 8}), k.zeros(f32, {8, 2}), k.zeros(f32, {2, 4}));
     }},
    {"reduce along no axis", __LINE__,
     [](Trace& k) {
       reduce(k.zeros(f32, {4, 8}), 2, Combiner::sum);
     }},
    {"row sum of a vector", __LINE__, [](Trace& k) { row_sum(k.zeros(f32, {8})); }},
    {"slice that ends outside", __LINE__,
     [](Trace& k) {
       slice(k.zeros(f32, {4, 8}), {0, 4}, {4, 5});
     }},
    {"slice of other rank", __LINE__,
     [](Trace& k) {
       slice(k.zeros(f32, {4, 8}), {0}, {4});
     }},
    {"scan of unlike shapes", __LINE__,
     [](Trace& k) {
       scan({k.zeros(f32, {8}), k.zeros(i64, {1})}, 0, argmax_pair);
     }},
    {"more than there are", __LINE__,
     [](Trace& k) {
       top_k(k.zeros(f32, {4, 8}), 9);
     }},
    {"largest mask", __LINE__,
     [](Trace& k) {
       top_k(k.zeros(b1, {4, 8}), 2);
     }},
    {"parts of other rows", __LINE__,
     [](Trace& k) {
       top_k({k.zeros(f32, {4, 8}), k.zeros(i64, {4, 8})},
             {k.zeros(f32, {2, 8}), k.zeros(i64, {2, 8})}, 2);
     }},
    {"counter of another type", __LINE__, [](Trace& k) { philox(k.zeros(i32, {8}), 1); }},
    {"sum of masks", __LINE__, [](Trace& k) { reduce(k.zeros(b1, {8}), 0, Combiner::sum); }},
    {"custom combiner without a function", __LINE__,
     [](Trace& k) { reduce(k.zeros(f32, {8}), 0, Combiner::custom); }},
    {"argmax of masks", __LINE__, [](Trace& k) { argmax(k.zeros(b1, {8}), 0); }},
    {"reduce of unlike shapes", __LINE__,
     [](Trace& k) {
       reduce({k.zeros(f32, {8}), k.zeros(i64, {1})}, 0, argmax_pair);
     }},
    {"combiner changes the dtype", __LINE__,
     [](Trace& k) {
       Tile x = k.zeros(f32, {8});
       reduce({x}, 0, [](Tiles<1> a, Tiles<1> b) -> Tiles<1> { return {a[0] < b[0]}; });
     }},
    {"combiner uses an outer tile", __LINE__,
     [](Trace& k) {
       Tile x = k.zeros(f32, {8}), y = k.zeros(f32, {});
       auto f = [&](Tiles<1> a, Tiles<1> b) -> Tiles<1> { return {a[0] + b[0] * y}; };
       reduce({x}, 0, f);
     }},
    {"load in a combiner", __LINE__,
     [](Trace& k) {
       TensorRef X = k.input("X", f32, {8});
       auto f = [&](Tiles<1> a, Tiles<1>) -> Tiles<1> { return {a[0] + load(X[3].tile({}, {}))}; };
       reduce({k.zeros(f32, {8})}, 0, f);
     }},
    {"loop in a combiner", __LINE__,
     [](Trace& k) {
       auto f = [&](Tiles<1> a, Tiles<1> b) -> Tiles<1> {
         for (Index i : k.range(4)) a[0] += b[0] * i;
         return a;
       };
       reduce({k.zeros(f32, {8})}, 0, f);
     }},
};

const std::vector<Case> kMemory = {
    {"store of another dtype", __LINE__,
     [](Trace& k) {
       TensorRef Y = k.output("Y", f16, {k.dim("M"), k.dim("N")});
       store(Y.tile({0, 0}, {64, 64}), k.zeros(f32, {64, 64}));
     }},
    {"store of another shape", __LINE__,
     [](Trace& k) {
       TensorRef Y = k.output("Y", f32, {k.dim("N")});
       store(Y.tile({0}, {64}), k.zeros(f32, {1, 64}));
     }},
    {"store into an input", __LINE__,
     [](Trace& k) {
       TensorRef X = k.input("X", f32, {k.dim("N")});
       store(X.tile({0}, {64}), k.zeros(f32, {64}));
     }},
    {"store of another program's tile", __LINE__,
     [](Trace& k) {
       Trace q("other");
       TensorRef Y = k.output("Y", f32, {8});
       store(Y.tile({0}, {8}), q.zeros(f32, {8}));
     }},
    {"pad does not fit", __LINE__,
     [](Trace& k) { load(k.input("X", u8, {8}).tile({0}, {8}), {.pad = -1}); }},
    {"coordinates of another rank", __LINE__,
     [](Trace& k) {
       k.input("X", f32, {8, 8}).tile({0}, {8});
     }},
    {"extents of another rank", __LINE__,
     [](Trace& k) {
       k.input("X", f32, {8, 8}).window({0, 0}, {8});
     }},
    {"too many []", __LINE__, [](Trace& k) { k.input("X", f32, {8})[0][1].tile({}, {}); }},
    {"empty view", __LINE__, [](Trace& k) { k.input("X", f32, {8}).tile({0}, {0}); }},
    {"output never stored", __LINE__,
     [](Trace& k) {
       k.output("Y", f32, {8});
       k.finish();
     }},
    {"parameters of one name", __LINE__,
     [](Trace& k) {
       k.input("X", f32, {8});
       k.output("X", f32, {8});
     }},
    {"parameter name", __LINE__, [](Trace& k) { k.input("my tensor", f32, {8}); }},
    {"extent that is a formula", __LINE__, [](Trace& k) { k.input("X", f32, {k.dim("N") + 1}); }},
    {"negative extent", __LINE__, [](Trace& k) { k.input("X", f32, {-1}); }},
    {"extent from the grid", __LINE__,
     [](Trace& k) {
       auto [p] = k.grid(4);
       k.input("X", f32, {p});
     }},
    {"nine axes", __LINE__,
     [](Trace& k) {
       k.input("X", f32, {1, 1, 1, 1, 1, 1, 1, 1, 1});
     }},
    {"dim name", __LINE__, [](Trace& k) { k.dim("i0"); }},
    {"dim name with a blank", __LINE__, [](Trace& k) { k.dim("a b"); }},
    {"promise of nothing", __LINE__, [](Trace& k) { k.dim("N", {.multiple_of = 0}); }},
    {"two promises", __LINE__,
     [](Trace& k) {
       k.dim("N", {.multiple_of = 8});
       k.dim("N", {.multiple_of = 16});
     }},
    {"program name", __LINE__, [](Trace&) { Trace q("my kernel"); }},
    {"value name", __LINE__, [](Trace& k) { k.zeros(f32, {8}).named("a b"); }},
};

const std::vector<Case> kControl = {
    {"grid from a coordinate", __LINE__,
     [](Trace& k) {
       Trace q("other");
       auto [p] = q.grid(q.dim("N"));
       Index wrong = p + 1;
       k.grid(wrong);
     }},
    {"grid from a loop", __LINE__,
     [](Trace& k) {
       for (Index i : k.range(4)) k.grid(i);
     }},
    {"two grids", __LINE__,
     [](Trace& k) {
       k.grid(k.dim("N"));
       k.grid(1, 2);
     }},
    {"step may be 0", __LINE__, [](Trace& k) { k.range(0, 8, k.dim("N")); }},
    {"step is negative", __LINE__, [](Trace& k) { k.range(8, 0, -1); }},
    {"carried type changes", __LINE__,
     [](Trace& k) {
       Tile acc = k.zeros(f32, {64, 64});
       for ([[maybe_unused]] Index i : k.range(k.dim("K"))) acc = cast(acc, f16);
     }},
    {"variable changes its shape", __LINE__,
     [](Trace& k) {
       Tile keep = k.zeros(b1, {1, 128});
       keep = keep & k.zeros(b1, {64, 1});
     }},
    {"break", __LINE__,
     [](Trace& k) {
       for ([[maybe_unused]] Index i : k.range(k.dim("K"))) break;
       k.finish();
     }},
    {"return from two loops", __LINE__,
     [](Trace& k) {
       [&] {
         for ([[maybe_unused]] Index i : k.range(4))
           for ([[maybe_unused]] Index j : k.range(4)) return;
       }();
       Tile after = k.zeros(f32, {8}) + 1;
       k.finish();
     }},
    {"an error caught by the author", __LINE__,
     [](Trace& k) {
       Tile a = k.zeros(f32, {8});
       try {
         for (Index i : k.range(4)) a = a + (k.zeros(f16, {8}) + i);
       } catch (const UserError&) {
       }
       k.finish();
     }},
    {"an exception in a branch", __LINE__,
     [](Trace& k) {
       try {
         k.when(k.dim("N") < 4, [] { throw std::runtime_error("mine"); });
       } catch (const std::runtime_error&) {
       }
       k.finish();
     }},
    {"value outlives its loop", __LINE__,
     [](Trace& k) {
       std::optional<Tile> last;
       for ([[maybe_unused]] Index i : k.range(k.dim("K"))) last.emplace(k.zeros(f32, {8}));
       Tile x = *last + 1;
     }},
    {"value outlives its branch", __LINE__,
     [](Trace& k) {
       std::optional<Tile> last;
       k.when(k.dim("N") < 4, [&] { last.emplace(k.zeros(f32, {8})); });
       Tile x = *last;
     }},
    {"counter outlives its loop", __LINE__,
     [](Trace& k) {
       std::optional<Index> last;
       for (Index i : k.range(4)) last.emplace(i);
       Tile x = k.zeros(f32, {8}) + *last;
     }},
    {"finish in a loop", __LINE__,
     [](Trace& k) {
       for ([[maybe_unused]] Index i : k.range(4)) k.finish();
     }},
    {"a loop left open by hand", __LINE__,
     [](Trace& k) {
       auto loop = k.range(4);
       auto counter = loop.begin();
       k.finish();
     }},
    {"a loop left open in a branch", __LINE__,
     [](Trace& k) {
       std::unique_ptr<Trace::Loop::Iterator> counter;
       auto open = [&] { counter.reset(new Trace::Loop::Iterator(k.range(4).begin())); };
       k.when(k.dim("N") < 4, open);
     }},
    {"moved from", __LINE__,
     [](Trace& k) {
       Tile a = k.zeros(f32, {8}), b = std::move(a);
       b = b + a;
     }},
    {"assignment to what was moved from", __LINE__,
     [](Trace& k) {
       Tile a = k.zeros(f32, {8}), b = std::move(a);
       a = b + 1;
     }},
    {"tile of a finished program", __LINE__,
     [](Trace& k) {
       Tile a = k.zeros(f32, {8});
       k.finish();
       Tile b = a + 1;
     }},
    {"trace of a finished program", __LINE__,
     [](Trace& k) {
       k.finish();
       k.zeros(f32, {8});
     }},
    {"dim of a finished program", __LINE__,
     [](Trace& k) {
       k.finish();
       k.dim("N");
     }},
    {"finished twice", __LINE__,
     [](Trace& k) {
       k.finish();
       k.finish();
     }},
    {"in a scope", __LINE__,
     [](Trace& k) {
       Trace::Scope outer(k, "block"), inner(k, "rms_norm");
       Tile c = k.zeros(f32, {8}) + k.zeros(f32, {9});
     }},
};

TEST(Errors, WrongProgramsSayWhatIsWrongAndWhere) {
  std::string all;
  for (const auto* list : {&kOperands, &test::place_errors(), &test::format_errors(), &kShapes,
                           &kMemory, &kControl, &test::while_errors()})
    for (const Case& c : *list) all += message(c);
  EXPECT_EQ(all.find("NOT CAUGHT"), std::string::npos) << all;
  TW_EXPECT_GOLDEN("errors.txt", all);
}

TEST(Errors, ATileMayOutliveItsTrace) {
  std::optional<Tile> left;
  std::optional<Index> n;
  {
    Trace k("p");
    left.emplace(k.zeros(f32, {8}));
    n.emplace(k.dim("N") + 1);
  }
  EXPECT_EQ(left->type(), (Type{f32, {8}}));
  Tile more = *left + *n;
  EXPECT_EQ(more.type(), (Type{f32, {8}}));
}

TEST(Errors, ContinueAndErrorsOutsideLoopsDoNoHarm) {
  Trace k("p");
  TensorRef Y = k.output("Y", f32, {8});
  Tile a = k.zeros(f32, {8});
  try {
    a = a + k.zeros(f16, {8});
  } catch (const UserError&) {
  }
  for (Index i : k.range(4)) {
    a += i;
    if (a.extent(0) == 8) continue;
    a += 1000;
  }
  store(Y.tile({0}, {8}), a);
  EXPECT_NO_THROW(k.finish());
}

}  // namespace
}  // namespace tw
