#include <cmath>

#include "tw/kernels/conv/conv.h"

namespace tw::kernels {
namespace {

/// A tensor of channels last with both spatial axes; one axis stands for w.
struct Image {
  Image(const TensorView& t, int axes) : data(to_doubles(t)) {
    const std::vector<int64_t>& d = t.dims;
    n = d[0];
    h = axes == 2 ? d[1] : 1;
    w = d[axes];
    c = d[axes + 1];
  }
  /// Zero outside.
  double at(int64_t in, int64_t ih, int64_t iw, int64_t ic) const {
    if (ih < 0 || ih >= h || iw < 0 || iw >= w) return 0;
    return data[static_cast<size_t>(((in * h + ih) * w + iw) * c + ic)];
  }
  int64_t n, h, w, c;
  std::vector<double> data;
};

int64_t start(const Window& w, int64_t place) { return place * w.stride - w.before; }

struct Windows {
  Window h, w;
  int64_t oh, ow;
};

Windows windows_of(const Problem& p, int axes) {
  Windows r{{}, window_of(p, "w", p.extent("w")), 1, 0};
  if (axes == 2) {
    r.h = window_of(p, "h", p.extent("h"));
    r.oh = r.h.places(p.extent("h"));
  }
  r.ow = r.w.places(p.extent("w"));
  return r;
}

}  // namespace

check::Reference conv_reference(const Problem& p, std::span<const TensorView> in) {
  const int axes = static_cast<int>(in[0].rank()) - 2;
  const Image x(in[0], axes);
  const std::vector<double> f = to_doubles(in[1]);
  const std::vector<double> bias = in.size() > 2 ? to_doubles(in[2]) : std::vector<double>();
  const Windows s = windows_of(p, axes);
  const int64_t outputs = p.extent("k"), groups = p.extent("groups"), group = x.c / groups;
  check::ReferenceOutput y;
  for (int64_t n = 0; n < x.n; ++n)
    for (int64_t oh = 0; oh < s.oh; ++oh)
      for (int64_t ow = 0; ow < s.ow; ++ow)
        for (int64_t o = 0; o < outputs; ++o) {
          const int64_t first = o / (outputs / groups) * group;
          double sum = bias.empty() ? 0 : bias[o], magnitude = std::abs(sum);
          for (int64_t th = 0; th < s.h.kernel; ++th)
            for (int64_t tw = 0; tw < s.w.kernel; ++tw)
              for (int64_t c = 0; c < group; ++c) {
                const double term = x.at(n, start(s.h, oh) + th * s.h.dilation,
                                         start(s.w, ow) + tw * s.w.dilation, first + c) *
                                    f[((th * s.w.kernel + tw) * group + c) * outputs + o];
                sum += term;
                magnitude += std::abs(term);
              }
          y.value.push_back(sum);
          y.sum_abs.push_back(magnitude);
        }
  const int64_t terms = s.h.kernel * s.w.kernel * group + (bias.empty() ? 0 : 1);
  return {{.family = check::Family::gemm, .out = p.dtype, .terms = terms}, {std::move(y)}};
}

check::Reference pool2d_reference(const Problem& p, std::span<const TensorView> in) {
  const Image x(in[0], 2);
  const Windows s = windows_of(p, 2);
  const std::string op = p.option("op");
  const int64_t elements = s.h.kernel * s.w.kernel;
  check::ReferenceOutput y;
  for (int64_t n = 0; n < x.n; ++n)
    for (int64_t oh = 0; oh < s.oh; ++oh)
      for (int64_t ow = 0; ow < s.ow; ++ow)
        for (int64_t c = 0; c < x.c; ++c) {
          double sum = 0, magnitude = 0, largest = -INFINITY;
          int64_t inside = 0;
          for (int64_t t = 0; t < elements; ++t) {
            const int64_t ih = start(s.h, oh) + t / s.w.kernel * s.h.dilation;
            const int64_t iw = start(s.w, ow) + t % s.w.kernel * s.w.dilation;
            if (ih < 0 || ih >= x.h || iw < 0 || iw >= x.w) continue;
            const double v = x.at(n, ih, iw, c);
            ++inside;
            sum += v;
            magnitude += std::abs(v);
            // of equal zeros the positive one is larger
            const bool zeros = v == 0 && largest == 0 && std::signbit(largest);
            if (std::isnan(v) || v > largest || zeros) largest = std::isnan(largest) ? largest : v;
          }
          const auto over = static_cast<double>(op == "average" ? elements : inside);
          y.value.push_back(op == "max" ? largest : over == 0 ? 0 : sum / over);
          y.sum_abs.push_back(over == 0 ? 0 : magnitude / over);
        }
  const auto family = op == "max" ? check::Family::exact : check::Family::reduction;
  return {{.family = family, .out = p.dtype, .terms = elements}, {std::move(y)}};
}

}  // namespace tw::kernels
