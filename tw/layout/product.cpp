#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/layout/tiler.h"

namespace tw {

Layout logical_product(const Layout& a, const Layout& b) {
  int64_t end = 0;
  if (__builtin_mul_overflow(a.size(), b.cosize(), &end))
    throw UserError(
        fmt::format("logical product: the extent of {} copies of {} does not fit in 64 bits",
                    b.cosize(), to_string(a)));
  return make_layout({a, composition(complement(a, end), b)});
}

static Layout of_rank(const Layout& layout, int rank) {
  std::vector<Layout> modes;
  for (int i = 0; i < rank; i++) modes.push_back(i < layout.rank() ? layout.mode(i) : Layout());
  return make_layout(std::move(modes));
}

static Layout product_by_mode(const Layout& a, const Layout& b, bool raked) {
  const int rank = std::max(a.rank(), b.rank());
  const Layout product = logical_product(of_rank(a, rank), of_rank(b, rank));
  std::vector<Layout> modes;
  for (int i = 0; i < rank; i++)
    modes.push_back(make_layout({product.mode(raked).mode(i), product.mode(!raked).mode(i)}));
  return coalesce_modes(make_layout(std::move(modes)));
}

Layout blocked_product(const Layout& a, const Layout& b) { return product_by_mode(a, b, false); }

Layout raked_product(const Layout& a, const Layout& b) { return product_by_mode(a, b, true); }

}  // namespace tw
