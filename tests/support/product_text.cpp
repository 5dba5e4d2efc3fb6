#include "tests/support/product_text.h"

#include <fmt/format.h>

namespace tw::test {

std::string product_text(const ProductText& p) {
  const DType sum = p.sum;
  const std::string tile = fmt::format("{}[{},{}]", name(sum), p.bm, p.bn);
  const std::string place = fmt::format("pid0*{}, pid1*{}", p.bm, p.bn);
  std::string s = "program gemm\ndim M\ndim N\ndim K\n";
  s += fmt::format("in A: {0}[M, K]\nin B: {0}[K, N]\n", name(p.in));
  if (p.epilogue) s += fmt::format("in bias: {}[N]\n", name(sum));
  s += fmt::format("out C: {}[M, N]\n", name(p.out));
  if (p.epilogue) s += fmt::format("out D: {}[M, N]\n", name(sum));
  s += fmt::format("grid (cdiv(M, {}), cdiv(N, {}))\n\n%0 = full 0 : {}\n", p.bm, p.bn, tile);
  s += fmt::format(
      "%5 = for i0 in 0..cdiv(K, {2}) step 1 carry (%1 = %0) : {4} {{\n"
      "  %2 = load A{{pid0*{0}, i0*{2}}} : {3}[{0},{2}]\n"
      "  %3 = load B{{i0*{2}, pid1*{1}}} : {3}[{2},{1}]\n"
      "  %4 = dot ieee %2, %3, %1 : {4}\n  yield %4\n}}\n",
      p.bm, p.bn, p.bk, name(p.in), tile);
  std::string last = "%5";
  if (p.epilogue) {
    s += fmt::format(
        "%6 = load bias{{pid1*{1}}} : {0}[{1}]\n%7 = reshape %6 : {0}[1,{1}]\n"
        "%8 = add %5, %7 : {2}\n%9 = full 0 : {0}[1,1]\n%10 = max %8, %9 : {2}\n",
        name(sum), p.bn, tile);
    last = "%10";
  }
  if (p.out != sum) {
    s += fmt::format("%11 = cast {} : {}[{},{}]\n", last, name(p.out), p.bm, p.bn);
    last = "%11";
  }
  s += fmt::format("store {} to C{{{}}}\n", last, place);
  if (p.epilogue) s += fmt::format("store %5 to D{{{}}}\n", place);
  return s;
}

}  // namespace tw::test
