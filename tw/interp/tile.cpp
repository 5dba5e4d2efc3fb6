#include "tw/interp/tile.h"

namespace tw {

TileData make_tile(const Type& type) {
  return {type, std::vector<Scalar>(static_cast<size_t>(count(type.shape)))};
}

void for_each_index(const Extents& shape, const std::function<void(const Extents&)>& visit) {
  Extents index(shape.size(), 0);
  for (int64_t n = count(shape); n > 0; --n) {
    visit(index);
    for (size_t k = shape.size(); k-- > 0;) {
      if (++index[k] < shape[k]) break;
      index[k] = 0;
    }
  }
}

int64_t position(const Extents& shape, const Extents& index) {
  int64_t at = 0;
  for (size_t k = 0; k < shape.size(); ++k) at = at * shape[k] + (shape[k] == 1 ? 0 : index[k]);
  return at;
}

const Scalar& element(const TileData& a, const Extents& index) {
  return a.data[static_cast<size_t>(position(a.type.shape, index))];
}

TileData map(const Type& result, const TileData& a, const Unary& f) {
  TileData r = make_tile(result);
  for (size_t i = 0; i < r.data.size(); ++i) r.data[i] = f(a.data[i]);
  return r;
}

TileData map(const Type& result, const TileData& a, const TileData& b, const Binary& f) {
  TileData r = make_tile(result);
  size_t at = 0;
  for_each_index(result.shape,
                 [&](const Extents& i) { r.data[at++] = f(element(a, i), element(b, i)); });
  return r;
}

TileData map(const Type& result, const TileData& a, const TileData& b, const TileData& c,
             const Ternary& f) {
  TileData r = make_tile(result);
  size_t at = 0;
  for_each_index(result.shape, [&](const Extents& i) {
    r.data[at++] = f(element(a, i), element(b, i), element(c, i));
  });
  return r;
}

TileData transposed(const TileData& a, const std::vector<int>& perm) {
  TileData r{{a.type.dtype, {}}, {}};
  for (int p : perm) r.type.shape.push_back(a.type.shape[static_cast<size_t>(p)]);
  Extents source(perm.size());
  for_each_index(r.type.shape, [&](const Extents& i) {
    for (size_t k = 0; k < perm.size(); ++k) source[static_cast<size_t>(perm[k])] = i[k];
    r.data.push_back(element(a, source));
  });
  return r;
}

TileData broadcast_to(const TileData& a, const Extents& shape) {
  TileData r{{a.type.dtype, shape}, {}};
  for_each_index(shape, [&](const Extents& i) { r.data.push_back(element(a, i)); });
  return r;
}

std::vector<Scalar> line(const TileData& a, int axis, Extents index) {
  std::vector<Scalar> r;
  const size_t k = static_cast<size_t>(axis);
  for (index[k] = 0; index[k] < a.type.shape[k]; ++index[k]) r.push_back(element(a, index));
  return r;
}

void set_line(TileData& a, int axis, Extents index, const std::vector<Scalar>& elements) {
  const size_t k = static_cast<size_t>(axis);
  for (index[k] = 0; index[k] < a.type.shape[k]; ++index[k])
    a.data[static_cast<size_t>(position(a.type.shape, index))] =
        elements[static_cast<size_t>(index[k])];
}

}  // namespace tw
