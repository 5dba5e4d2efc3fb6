#include "tw/emit/cpu/contract_shape.h"

#include <algorithm>

#include "tw/base/round.h"

namespace tw::cpu {

static constexpr int64_t kLargeFirstCache = 48 << 10, kLargeSecondCache = 1 << 20;

std::vector<int> ContractShape::heights() const {
  std::vector<int> all{rows};
  const int step = rows > 6 ? 4 : 2;
  for (int h = (rows - 1) / step * step; h > 0; h -= step) all.push_back(h);
  if (all.back() > step) all.push_back(step);
  return all;
}

// Measured with both kinds of cache: on 32 KB L1 and 512 KB L2 (Zen 3) a depth of 256 loses 5 %
// when doubled; on 48 KB and 2 MB (Granite Rapids) 512 beats 256 by 4 %. Both are the panel of B in
// a 32nd of L2. Rows: A's block in an eighth of L2, since B's panels pass through it.
// In place: on 48 KB (12 ways) and 2 MB, A up to L2 and B up to a quarter of it beat packed ones by
// 2 to 5 % from 128 to 512 (Sapphire Rapids), whatever sets B's rows fall on; a second cache that
// gives a line a cycle hides that. Streams of B: 4 rows fetched 512 bytes ahead reach 18.7 GB/s, 8
// that are not 17.2 (the same); on Zen 3 fetching loses 10 %. On 32 KB and 1 MB (Zen 4), both up to
// L2 beat packed ones by 2 to 4 % from 128 to 512, A beyond it loses 4 %. On 32 KB and 512 KB they
// were measured together, up to 128 KB.
ContractShape choose_contract_shape(const CpuMachine& machine, const Mapping& mapping, DType type) {
  ContractShape s;
  s.type = type;
  const int64_t size = bytes(type);
  s.lanes = static_cast<int>(std::max<int64_t>(machine.vector_bytes / size, 1));
  // Two vectors a row leave most rows, which pays for long vectors; short ones need three to have
  // fewer loads than products.
  s.vectors = static_cast<int>(mapping.get("nv", machine.vector_bytes >= 32 ? 2 : 3));
  int rows = std::max((machine.vector_registers - s.vectors - 1) / s.vectors, 1);
  if (machine.vector_bytes < 32 && rows > 4) rows -= rows % 4;
  s.rows = static_cast<int>(mapping.get("mr", rows));
  const int64_t depth = machine.l2 / 32 / (s.cols() * size) / 8 * 8;
  s.depth_block = round_up(mapping.get("kc", std::clamp<int64_t>(depth, 64, 1024)), 8);
  const int64_t height = machine.l2 / 8 / (s.depth_block * size);
  s.row_block = round_up(mapping.get("mc", std::max<int64_t>(height, s.rows)), s.rows);
  s.col_block = round_up(mapping.get("nc", 2048), s.cols());
  const bool large = machine.l1d >= kLargeFirstCache;
  const bool fast = machine.l2 >= kLargeSecondCache;
  const int64_t in_place = machine.l2 / (large ? 4 : fast ? 1 : 8);
  s.b_in_place_bytes = mapping.get("ip", in_place >> 10) << 10;
  s.a_in_place_bytes = s.b_in_place_bytes * (large ? 4 : 1);
  s.minds_crowds = !fast;
  s.stream_ahead = large ? 512 : 0;
  return s;
}

}  // namespace tw::cpu
