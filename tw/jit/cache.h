#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tw/jit/module.h"
#include "tw/runtime/fork_mutex.h"

namespace tw {

/// Compiled kernels by key text, on disk, shared by any number of processes. One file an entry,
/// <hash of key>.so: the shared object, then key and metadata, then sizes and a checksum over all;
/// the text it was compiled from lies beside it as <hash>.cpp. Those of GPUs are called .cubin and
/// .cu. Entries appear whole or not at all
/// and are never changed in place. What is damaged, foreign or not loadable counts as missing, with
/// a warning. Where the folder cannot be written the process keeps its kernels in memory, with one
/// warning; nothing here makes a launch fail. Safe for many threads, and in forked children.
class Cache {
 public:
  /// The cache of the folder that the environment names now: TW_CACHE_DIR, else
  /// $XDG_CACHE_HOME/tilewright, else ~/.cache/tilewright. One object a folder and process.
  static std::shared_ptr<Cache> of_environment();

  /// `folder` empty: memory only.
  explicit Cache(std::string folder);

  const std::string& folder() const { return folder_; }
  static std::string name(const std::string& key);  ///< hash of the key, names its files
  /// What an entry holds, after which its files are called.
  enum class Form : uint8_t { shared_object, cubin };
  /// The text that the entry was compiled from; empty when it does not lie there.
  std::string source_path(const std::string& key, Form form = Form::shared_object) const;

  struct Loaded {
    std::shared_ptr<const Module> module;
    std::string metadata;
  };
  std::optional<Loaded> load(const std::string& key);
  /// Publishes an entry and loads it. Throws EnvError when the loader refuses the object, UserError
  /// when TW_CACHE_SIZE is no number of megabytes.
  Loaded store(const std::string& key, const std::string& metadata, const std::string& object,
               const std::string& source);
  /// The same for cubins, which are loaded elsewhere.
  struct Cubin {
    std::string bytes, metadata;
  };
  std::optional<Cubin> load_cubin(const std::string& key);
  void store_cubin(const std::string& key, const Cubin& cubin, const std::string& source);

  /// Held while one process compiles a key, so that others wait and load. Ends with its process,
  /// however that ends; a wait is given up after five seconds, since compiling twice is harmless.
  class Turn {
   public:
    Turn(Cache& cache, const std::string& key);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool waited() const { return waited_; }

   private:
    int file_ = -1;
    bool waited_ = false;
  };

  struct Item {
    std::string name, key;
    int64_t bytes;      ///< of the entry and its source
    int64_t last_used;  ///< seconds since 1970
  };
  /// Whole entries, the most recently used first.
  std::vector<Item> items() const;
  /// Why load(key) finds nothing: how the most similar entry's key differs, line by line. Empty
  /// when the entry is there.
  std::string explain_miss(const std::string& key) const;
  /// Deletes the cache's files and no others. Throws EnvError that names a file that stays.
  void clear();

 private:
  struct Kept {
    std::string metadata, object;
  };
  bool readable();
  bool writable();
  void warn_once(const std::string& reason);
  /// Loads the object of an entry; `path` is empty when it lies in no file.
  using Load = std::function<void(const std::string& path, const std::string& object)>;
  std::optional<Kept> find(const std::string& key, Form form, const Load& load);
  std::optional<Kept> find_file(const std::string& key, Form form, const Load& load);
  void put(const std::string& key, Form form, const Kept& entry, const std::string& source,
           const Load& load);
  bool publish(const std::string& file, const std::string& bytes);
  void keep(const std::string& key, Kept entry, int64_t most);
  void trim(int64_t most);

  std::string folder_;
  std::atomic<bool> warned_{false};
  ForkMutex lock_;
  std::map<std::string, Kept> memory_;  ///< by key
  int64_t memory_bytes_ = 0;            ///< of its objects
};

}  // namespace tw
