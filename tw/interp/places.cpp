#include "tw/interp/places.h"

namespace tw {

void for_each_place(const Op& op, const Extents& shape, const Extents& origin,
                    const std::function<const TileData&(ValueId)>& tile, const VisitPlace& visit) {
  const View& view = *view_of(op);
  const PlaceOperands in = place_operands(op);
  for_each_index(shape, [&](const Extents& i) {
    PlaceAt place;
    place.at = origin;
    for (size_t k = 0; k < in.at.size(); ++k) {
      const Scalar& c = element(tile(in.at[k]), i);
      place.at[static_cast<size_t>(view.axes[k])] = c.i;
      place.undecided = place.undecided || c.undecided;
    }
    if (in.mask) {
      const Scalar& mask = element(tile(*in.mask), i);
      place.taken = mask.i != 0 || mask.undecided;
      place.maybe_taken = mask.undecided;
    }
    if (in.value) place.value = element(tile(*in.value), i);
    if (in.expected) place.expected = element(tile(*in.expected), i);
    visit(place);
  });
}

}  // namespace tw
