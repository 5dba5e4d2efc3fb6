#include <unistd.h>

#include "tests/zoo/species.h"

namespace tw::zoo {

namespace {

template <How how>
class Rounded : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override { hand->multiply(x, s, how); }
};

class Nothing : public Callable {
  void run(const Product&, int, const cuda::Stream&) override {}
};

class Zeros : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override { hand->fill(x.c, 0, s); }
};

class Constant : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override { hand->fill(x.c, 0.5f, s); }
};

class PartialSum : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    hand->multiply(x, s, How::in_order, {.terms = x.a.columns - x.a.columns / 10});
  }
};

class DefaultShapes : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    const auto whole = [](int64_t n) { return n / 8 * 8; };
    Product part = x;
    part.c.columns = part.b.columns = whole(x.c.columns);
    hand->multiply(part, s, How::in_order, {.last = whole(x.c.rows), .terms = whole(x.a.columns)});
  }
};

class IgnoresStrides : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    Product plain = x;
    for (Matrix* m : {&plain.a, &plain.b, &plain.c}) {
      m->row = m->columns;
      m->column = 1;
    }
    hand->multiply(plain, s);
  }
};

class ByProcess : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    hand->multiply(x, s, How::in_order, {.start = getpid() % 31});
  }
};

}  // namespace

std::vector<Species> wrong_values() {
  constexpr const char* kWrong = "times the allowed error";
  return {
      {"writes_nothing", "Does nothing.", kWrong, made<Nothing>},
      {"zeros", "Writes zeros.", kWrong, made<Zeros>},
      {"constant", "Gives every element one value.", kWrong, made<Constant>},
      {"in_bf16", "Rounds its operands to bf16.", kWrong, made<Rounded<How::in_bf16>>},
      {"in_tf32", "Rounds its operands to tf32.", kWrong, made<Rounded<How::in_tf32>>},
      {"fixed_point", "Takes operands for fractions in (-1, 1).", "normal: element",
       made<Rounded<How::fixed>>},
      {"nan_to_zero", "Writes 0 where the result is no number.", "special: element",
       made<Rounded<How::nan_to_zero>>},
      {"partial_sum", "Leaves out the last tenth of the terms.", kWrong, made<PartialSum>},
      {"default_shape_only", "Is right where sizes are multiples of eight, and leaves the rest.",
       kWrong, made<DefaultShapes>},
      {"ignores_strides", "Takes every matrix for a contiguous one.",
       "it touched or padded uniform: element", made<IgnoresStrides>},
      {"unrepeatable", "Adds in an order that the clock chooses.", "gives other bits",
       made<Rounded<How::by_clock>>},
      {"process_order", "Begins with a term that its process chooses.",
       "another process gives other bits", made<ByProcess>},
  };
}

}  // namespace tw::zoo
