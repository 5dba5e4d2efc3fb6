#include "tw/measure/peer.h"

#include <cstdio>
#include <cstring>

/// A plug-in that knows one op: Y = 2 X.
namespace {

struct State {
  const TwPeerSet* sets;
  bool fails;
};

void* prepare(const TwPeerTask* task, const TwPeerSet* sets, int count, char* text, int size) {
  if (std::strcmp(task->op, "double") != 0) {
    std::snprintf(text, size, "it only doubles");
    return nullptr;
  }
  std::snprintf(text, size, "plug-in, %d threads, %d sets, %s", task->threads, count,
                task->options);
  return new State{sets, std::strstr(task->options, "fail=yes") != nullptr};
}

int run(void* state, int set) {
  const State& s = *static_cast<State*>(state);
  const TwPeerTensor &x = s.sets[set].inputs[0], &y = s.sets[set].outputs[0];
  for (int64_t i = 0; i < y.dims[0]; ++i)
    static_cast<float*>(y.data)[i] = 2 * static_cast<const float*>(x.data)[i * x.strides[0]];
  return s.fails ? 5 : 0;
}

void release(void* state) { delete static_cast<State*>(state); }

}  // namespace

const TwPeer* tw_peer() {
  static const TwPeer table = {TW_PEER_ABI, "doubler", prepare, run, release};
  return &table;
}
