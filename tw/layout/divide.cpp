#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/layout/tiler.h"

namespace tw {

/// `f(mode of a, mode of the tiler)` for the modes that the tiler names.
template <class F>
static std::vector<Layout> each_tiled_mode(const Layout& a, const Tiler& tiler, F f) {
  const size_t rank = static_cast<size_t>(a.rank());
  if (tiler.modes().empty() || tiler.modes().size() > rank)
    throw UserError(fmt::format("tiler of {} modes for {}: wanted 1..{}", tiler.modes().size(),
                                to_string(a), rank));
  std::vector<Layout> results;
  for (size_t i = 0; i < tiler.modes().size(); i++)
    results.push_back(f(a.mode(static_cast<int>(i)), tiler.modes()[i]));
  return results;
}

static void append_modes(const Layout& from, int first, std::vector<Layout>& modes) {
  for (int i = first; i < from.rank(); i++) modes.push_back(from.mode(i));
}

template <class F>
static Layout mode_by_mode(const Layout& a, const Tiler& tiler, F f) {
  std::vector<Layout> modes = each_tiled_mode(a, tiler, f);
  append_modes(a, static_cast<int>(modes.size()), modes);
  return make_layout(std::move(modes));
}

Layout composition(const Layout& a, const Tiler& tiler) {
  if (!tiler.by_mode()) return composition(a, tiler.layout());
  return mode_by_mode(a, tiler,
                      [](const Layout& mode, const Tiler& t) { return composition(mode, t); });
}

Layout logical_divide(const Layout& a, const Layout& b) {
  const Layout tiles = make_layout({b, complement(b, a.size())});
  if (tiles.cosize() > a.size())
    throw UserError(
        fmt::format("logical divide: tiles {} cover {} indices: wanted {}, the size of {}",
                    to_string(b), tiles.cosize(), a.size(), to_string(a)));
  return composition(a, tiles);
}

Layout logical_divide(const Layout& a, const Tiler& tiler) {
  if (!tiler.by_mode()) return logical_divide(a, tiler.layout());
  return mode_by_mode(a, tiler,
                      [](const Layout& mode, const Tiler& t) { return logical_divide(mode, t); });
}

Layout zipped_divide(const Layout& a, const Tiler& tiler) {
  if (!tiler.by_mode()) return logical_divide(a, tiler.layout());
  const std::vector<Layout> split = each_tiled_mode(
      a, tiler, [](const Layout& mode, const Tiler& t) { return zipped_divide(mode, t); });
  std::vector<Layout> tiles, rest;
  for (const Layout& mode : split) {
    tiles.push_back(mode.mode(0));
    rest.push_back(mode.mode(1));
  }
  append_modes(a, static_cast<int>(split.size()), rest);
  return make_layout({make_layout(std::move(tiles)), make_layout(std::move(rest))});
}

Layout tiled_divide(const Layout& a, const Tiler& tiler) {
  const Layout zipped = zipped_divide(a, tiler);
  std::vector<Layout> modes = {zipped.mode(0)};
  append_modes(zipped.mode(1), 0, modes);
  return make_layout(std::move(modes));
}

}  // namespace tw
