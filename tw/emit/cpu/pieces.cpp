#include "tw/emit/cpu/pieces.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/emit/cpu/contract_shape.h"

namespace tw::cpu {
namespace {

const char* const kBlockText = R"(// n in equal blocks of whole units, at most `most` each.
TW_INLINE i64 tw_block(i64 n, i64 most, i64 unit) {
  const i64 blocks = max(cdiv(n, most), 1);
  return max(cdiv(cdiv(n, blocks), unit), 1) * unit;
})";

// Costs in products of two numbers: of packing one element, and of waking another thread. Measured
// with AVX-512 (190 GFLOP/s, 1.5 us); where products are slower both are smaller, and a second
// thread pays earlier than this says.
const char* const kCutText = R"(
// An axis of a product: its extent, the unit and the most of a piece, and where its length goes.
struct TwCutAxis {
  i64 extent, unit, most;
  i64* piece;  // null: the axis is not cut
};

TW_INLINE i64 tw_piece(const TwCutAxis& x, i64 pieces) {
  if (!x.piece) return x.extent;
  return tw_block(x.extent, min(max(cdiv(x.extent, pieces), 1), x.most / x.unit * x.unit), x.unit);
}

// Sets the lengths of pieces for which the busiest thread does least: products, 30 for each element
// that a piece packs, and 150000 once for waking threads. `others` pieces lie along other axes.
static __attribute__((noinline)) void tw_cut(
    const TwCutAxis& rows, const TwCutAxis& cols, i64 depth, i64 others, i64 threads) {
  f64 least = -1;
  const auto consider = [&](i64 r, i64 c) {
    const i64 m = tw_piece(rows, r), n = tw_piece(cols, c);
    const i64 all = others * cdiv(rows.extent, m) * cdiv(cols.extent, n);
    const bool in_place = (m + n) * depth <= $small;
    const f64 cost = (f64)cdiv(all, threads) * depth * (m * n + 30 * ((in_place ? 0 : m) + n)) +
                     (all > 1 && threads > 1 ? 1.5e5 : 0);
    if (least >= 0 && cost >= least) return;
    least = cost;
    if (rows.piece) *rows.piece = m;
    if (cols.piece) *cols.piece = n;
  };
  consider(1, 1);
  const i64 wanted = cdiv(threads, max(others, 1));
  for (i64 all = wanted; wanted > 1 && all <= 2 * wanted; all += wanted)
    for (i64 r = 1; r <= all; ++r) consider(r, cdiv(all, r));
})";

/// The contraction that is all of the program's body.
const Op& contraction_of(const Program& p) {
  const Region* r = &p.body;
  while (r->ops.size() == 1 && r->ops[0].code == Opcode::par) r = &r->ops[0].regions[0];
  if (r->ops.size() != 1 || r->ops[0].code != Opcode::contract)
    throw InternalError("dims are chosen for what is no contraction");
  return r->ops[0];
}

Expr with_dim(const Expr& e, Symbol dim, const Expr& value) {
  return substitute(e, [&](Symbol s) { return s == dim ? std::optional(value) : std::nullopt; });
}

/// One axis of the contraction, and the dim that is the length of its pieces.
struct Cut {
  std::string extent, piece;
  int unit = 1;
  int64_t most = 1;
};

class Chooser {
 public:
  Chooser(Context& c, const Op& op)
      : c_(c),
        attr_(op.as<ContractAttr>()),
        sum_(c.program.type(op.regions[2].args[0])),
        shape_(choose_contract_shape(c.machine, c.mapping, sum_.dtype)) {}

  void emit(Writer& out) {
    const Cut rows = cut(attr_.rows, 0, "pm", shape_.rows);
    const Cut cols = cut(attr_.cols, 1, "pn", shape_.cols());
    out.line("// Cuts rows and columns into pieces, each the work of an instance.");
    out.open("static void choose_pieces(i64* dims, i64 threads) {");
    const std::vector<Dim>& dims = c_.program.dims;
    for (size_t k = 0; k < dims.size(); ++k) {
      if (!dims[k].chosen()) out.line(fmt::format("const i64 {} = dims[{}];", dims[k].name, k));
    }
    const auto axis = [](const Cut& x) {
      return fmt::format("{{{}, {}, {}, {}}}", x.extent, x.unit, x.most, x.piece);
    };
    out.line(fmt::format("const TwCutAxis rows = {}, cols = {};", axis(rows), axis(cols)));
    out.line(fmt::format("tw_cut(rows, cols, {}, {}, threads);", depth(), others()));
    for (const std::string& line : overruled_) out.line(line);
    out.close();
    use_block(c_.prelude);
    const int64_t small = shape_.in_place_bytes / bytes(shape_.type);
    c_.prelude.add("cut", fill(kCutText, {{"small", std::to_string(small)}}));
  }

 private:
  Cut cut(const Expr& extent, int side, const std::string& knob, int unit) {
    const std::vector<Dim>& dims = c_.program.dims;
    for (size_t k = given_dims(c_.program); k < dims.size(); ++k) {
      const Symbol dim{SymbolKind::dim, static_cast<int>(k)};
      if (!mentions(extent, dim)) continue;
      for (const Expr& all : c_.program.grid) {
        if (!mentions(all, dim)) continue;
        const int64_t chosen = c_.mapping.get(knob, 0);
        if (chosen > 0) overruled_.push_back(fmt::format("dims[{}] = {};", k, chosen));
        return {c_.text(simplify(with_dim(all, dim, 1), c_.facts)), fmt::format("&dims[{}]", k),
                unit, dims[k].at_most};
      }
    }
    return {std::to_string(sum_.shape[side]), "nullptr", unit, sum_.shape[side]};
  }

  /// Of the first instance, where it depends on the instance.
  std::string depth() const {
    return c_.text(substitute(attr_.depth, [](Symbol s) {
      return s.kind == SymbolKind::pid ? std::optional(Expr(0)) : std::nullopt;
    }));
  }

  /// Instances along axes that are not cut.
  std::string others() const {
    std::string product;
    for (const Expr& extent : c_.program.grid) {
      if (chooses(c_.program, extent)) continue;
      product += fmt::format("{}max({}, 0)", product.empty() ? "" : " * ", c_.text(extent));
    }
    return product.empty() ? "1" : product;
  }

  static bool chooses(const Program& p, const Expr& extent) {
    bool found = false;
    for_each_symbol(extent, [&](Symbol s) { found = found || p.dims[s.id].chosen(); });
    return found;
  }

  Context& c_;
  const ContractAttr& attr_;
  const Type& sum_;
  const ContractShape shape_;
  std::vector<std::string> overruled_;
};

}  // namespace

bool chooses(const Program& p) { return given_dims(p) < p.dims.size(); }

Expr most_pieces(const Program& p, const Expr& extent) {
  const Expr e = substitute(extent, [&](Symbol s) {
    return p.dims[s.id].chosen() ? std::optional(Expr(1)) : std::nullopt;
  });
  return simplify(e, facts_of(p));
}

void emit_choose(Context& c, Writer& out) { Chooser(c, contraction_of(c.program)).emit(out); }

void choose_dims(const Program& p, const std::string& given, const std::string& threads,
                 Writer& out) {
  std::string values;
  for (size_t k = 0; k < p.dims.size(); ++k) {
    values += k ? ", " : "";
    values += p.dims[k].chosen() ? "1" : fmt::format("{}[{}]", given, k);
  }
  out.line(fmt::format("i64 dims[] = {{{}}};", values));
  out.line(fmt::format("choose_pieces(dims, {});", threads));
}

void use_block(Prelude& prelude) { prelude.add("block", kBlockText); }

}  // namespace tw::cpu
