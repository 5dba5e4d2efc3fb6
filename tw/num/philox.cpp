#include "tw/num/codec.h"

namespace tw {
namespace {

constexpr int kRounds = 10;
constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

uint32_t low(uint64_t v) { return static_cast<uint32_t>(v); }
uint32_t high(uint64_t v) { return static_cast<uint32_t>(v >> 32); }

}  // namespace

Philox philox(uint64_t seed, uint64_t stream, uint64_t counter) {
  uint32_t c[4] = {low(counter), high(counter), high(seed), high(stream)};
  uint32_t k0 = low(seed), k1 = low(stream);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t p0 = kMultiplier0 * c[0], p1 = kMultiplier1 * c[2];
    c[0] = high(p1) ^ c[1] ^ k0;
    c[1] = low(p1);
    c[2] = high(p0) ^ c[3] ^ k1;
    c[3] = low(p0);
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

}  // namespace tw
