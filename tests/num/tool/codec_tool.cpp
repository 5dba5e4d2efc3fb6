// codec encode|decode TYPE: the codec as a filter, for comparison with other implementations.
// encode reads f64 values and writes one u16 code each, decode the reverse; native byte order.
#include <cstdio>
#include <cstring>

#include "tw/num/codec.h"

namespace {

template <class In, class Out, class F>
int filter(F convert) {
  In in;
  while (std::fread(&in, sizeof in, 1, stdin) == 1) {
    const Out out = convert(in);
    if (std::fwrite(&out, sizeof out, 1, stdout) != 1) return 1;
  }
  return std::ferror(stdin) || std::fflush(stdout) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto type = argc == 3 ? tw::dtype_named(argv[2]) : std::nullopt;
  if (!type || !tw::is_float(*type)) {
    std::fprintf(stderr, "usage: codec encode|decode e4m3|e5m2|e3m2|e2m3|e2m1|e8m0|f16|bf16\n");
    return 2;
  }
  if (std::strcmp(argv[1], "encode") == 0)
    return filter<double, uint16_t>(
        [&](double v) { return static_cast<uint16_t>(tw::encode(*type, v)); });
  return filter<uint16_t, double>([&](uint16_t code) { return tw::decode(*type, code); });
}
