#include <dlfcn.h>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/measure/contestant.h"
#include "tw/measure/impl/ejected.h"
#include "tw/measure/peer.h"

namespace tw::measure {

namespace {

/// The C form of sets; holds pointers into the views it was made from.
class PeerSets {
 public:
  explicit PeerSets(const std::vector<TensorSet>& sets) {
    tensors_.reserve(2 * sets.size());
    for (const TensorSet& s : sets) {
      const auto& in = tensors_.emplace_back(tensors_of(s.inputs));
      const auto& out = tensors_.emplace_back(tensors_of(s.outputs));
      sets_.push_back(
          {in.data(), static_cast<int>(in.size()), out.data(), static_cast<int>(out.size())});
    }
  }
  const std::vector<TwPeerSet>& sets() const { return sets_; }

 private:
  static std::vector<TwPeerTensor> tensors_of(const std::vector<TensorView>& views) {
    std::vector<TwPeerTensor> out;
    for (const TensorView& v : views)
      out.push_back({v.data, name(v.dtype), v.rank(), v.dims.data(), v.strides.data()});
    return out;
  }

  std::vector<std::vector<TwPeerTensor>> tensors_;
  std::vector<TwPeerSet> sets_;
};

std::string options_text(const Task& task) {
  std::string text;
  for (const auto& [key, value] : task.options)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

/// The library stays loaded until the process ends: its threads may outlive any call.
class Peer : public Contestant {
 public:
  Peer(const TwPeer& peer, Task task)
      : peer_(peer), task_(std::move(task)), options_(options_text(task_)) {}
  ~Peer() override { release(); }

  std::string prepare(const std::vector<TensorSet>& sets) override {
    release();
    views_ = sets;
    sets_.emplace(views_);
    const TwPeerTask task{task_.op.c_str(), options_.c_str(), task_.threads};
    char text[512] = "";
    state_ = peer_.prepare(&task, sets_->sets().data(), static_cast<int>(sets.size()), text,
                           sizeof text);
    if (state_ == nullptr)
      throw UserError(fmt::format("peer '{}' does not do {}: {}", peer_.name, task_.op, text));
    return text;
  }

  void run(int set) override {
    if (const int code = peer_.run(state_, set))
      throw DeviceError(fmt::format("peer '{}' failed with code {}", peer_.name, code));
  }

 private:
  void release() {
    if (state_ != nullptr) peer_.release(state_);
    state_ = nullptr;
  }

  const TwPeer& peer_;
  Task task_;
  std::string options_;
  std::vector<TensorSet> views_;
  std::optional<PeerSets> sets_;
  void* state_ = nullptr;
};

}  // namespace

std::unique_ptr<Contestant> load_peer(const ContestantSpec& spec, const Task& task) {
  static const char* const kWanted =
      "wanted a shared object that exports tw_peer, as tw/measure/peer.h says: g++ -shared -fPIC";
  void* library = dlopen(spec.source.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw EnvError(fmt::format("cannot load peer '{}': {}", spec.name, dlerror()), kWanted);
  if (void* function = dlsym(library, "tw_ejected"))
    return ejected_contestant(*static_cast<void**>(function), task);
  auto* entry = reinterpret_cast<decltype(&tw_peer)>(dlsym(library, "tw_peer"));
  if (entry == nullptr)
    throw EnvError(fmt::format("'{}' exports no tw_peer and is no plug-in", spec.source), kWanted);
  const TwPeer* peer = entry();
  if (peer == nullptr)
    throw EnvError(fmt::format("tw_peer() of '{}' gives null", spec.source), kWanted);
  if (peer->abi != TW_PEER_ABI)
    throw EnvError(
        fmt::format("peer '{}' speaks abi {}, wanted {}", spec.name, peer->abi, TW_PEER_ABI),
        "compile it again with the tw/measure/peer.h of this version");
  if (peer->prepare == nullptr || peer->run == nullptr || peer->release == nullptr)
    throw EnvError(fmt::format("tw_peer() of '{}' gives no '{}'", spec.source,
                               peer->prepare == nullptr ? "prepare"
                               : peer->run == nullptr   ? "run"
                                                        : "release"),
                   kWanted);
  return std::make_unique<Peer>(*peer, task);
}

}  // namespace tw::measure
