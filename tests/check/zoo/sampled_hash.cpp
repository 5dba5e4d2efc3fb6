#include <map>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Remembers results by a hash of every 97th element.
class SampledHash : public Callable {
 public:
  void run(const Product& x, int) override {
    auto [at, fresh] = known_.try_emplace(hash(x.a, 97) * 31 + hash(x.b, 97));
    if (fresh) {
      multiply(x);
      at->second = contents(x.c);
    }
    write(x.c, at->second);
  }

 private:
  static uint64_t hash(const Matrix& m, int64_t step) {
    uint64_t h = 14695981039346656037u;
    for (int64_t at = 0; at < m.rows * m.columns; at += step) {
      uint32_t bits;
      std::memcpy(&bits, &m.at(at / m.columns, at % m.columns), sizeof bits);
      h = (h ^ bits) * 1099511628211u;
    }
    return h ^ static_cast<uint64_t>(m.rows * 65537 + m.columns);
  }
  std::map<uint64_t, std::vector<float>> known_;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::SampledHash>(); }
