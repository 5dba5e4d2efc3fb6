#include "tw/graph/onnx/model.h"

#include <cerrno>
#include <charconv>
#include <climits>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <onnx.pb.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/graph/onnx/elements.h"
#include "tw/graph/onnx/external.h"
#include "tw/graph/onnx/names.h"
#include "tw/tensor/file.h"

namespace tw::graph::onnx {

namespace {

/// Fills `message` from a file. It is read, not mapped: a file that shrinks meanwhile is an error.
template <class Message>
void parse_file(const std::string& path, Message& message, const char* what) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail_file(fmt::format("cannot read '{}'", path), errno);
  google::protobuf::io::FileInputStream in(fd);
  in.SetCloseOnDelete(true);
  struct stat there;
  if (fstat(fd, &there) != 0) fail_file(fmt::format("cannot read '{}'", path), errno);
  if (!S_ISREG(there.st_mode)) throw UserError(fmt::format("'{}' is no file", path));
  if (there.st_size > INT_MAX)
    throw UserError(fmt::format("'{}' has {} bytes, wanted fewer than 2 GiB", path, there.st_size),
                    "larger models keep their tensors in external data");
  const bool parsed = message.ParseFromBoundedZeroCopyStream(&in, static_cast<int>(there.st_size));
  if (in.GetErrno() != 0) fail_file(fmt::format("cannot read '{}'", path), in.GetErrno());
  if (!parsed) throw UserError(fmt::format("'{}' is no {}, or a part of one", path, what));
}

/// Turns the messages of one file into what they say. Its errors do not name the file.
class Reader {
 public:
  explicit Reader(const std::string& path) : external_(path) {}

  Model model(::onnx::ModelProto& m);
  /// Moves raw bytes out of the message.
  Tensor tensor(::onnx::TensorProto& t, const std::string& title);

 private:
  void opsets(const ::onnx::ModelProto& m, Model& to) const;
  void initializers(::onnx::GraphProto& g, Model& to);
  ValueInfo value_info(const ::onnx::ValueInfoProto& v, const char* what) const;
  std::vector<ValueInfo> inputs(const ::onnx::GraphProto& g, const Model& to) const;
  Node node(::onnx::NodeProto& n, int64_t position);
  Attribute attribute(::onnx::AttributeProto& a, const Node& n);
  Encoded encoded(::onnx::TensorProto& t, const std::string& title);
  Bytes external(const ::onnx::TensorProto& t, const Encoded& e);
  std::string name(const std::string& text, const std::string& what) const {
    return checked_name(text, what);
  }
  [[noreturn]] void fail(const std::string& what, const std::string& hint = "") const {
    throw UserError(what, hint);
  }

  ExternalFiles external_;
};

int64_t number_of(const std::string& text, const std::string& what) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw UserError(fmt::format("{} is '{}', wanted a whole number", what, printable(text)));
  return value;
}

Bytes Reader::external(const ::onnx::TensorProto& t, const Encoded& e) {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
  for (const auto& entry : t.external_data()) {
    const auto number = [&] {
      return number_of(entry.value(),
                       fmt::format("{} of the external data of {}", entry.key(), e.title));
    };
    if (entry.key() == "location")
      location = name(entry.value(), fmt::format("the external data of {}", e.title));
    if (entry.key() == "offset") offset = number();
    if (entry.key() == "length") length = number();
  }
  if (location.empty()) fail(fmt::format("{} has external data without a location", e.title));
  // Without a length the data may be followed by those of other tensors.
  return external_.part(e.title, location, offset, length.value_or(raw_bytes(e)));
}

template <class T, class List>
std::span<const T> numbers_of(const List& list) {
  return {list.data(), static_cast<size_t>(list.size())};
}

Encoded Reader::encoded(::onnx::TensorProto& t, const std::string& title) {
  Encoded e{.title = title, .type = t.data_type(), .dims = {t.dims().begin(), t.dims().end()}};
  if (t.has_segment()) fail(title + " is cut in segments, which we lack");
  e.floats = numbers_of<float>(t.float_data());
  e.doubles = numbers_of<double>(t.double_data());
  e.int32s = numbers_of<int32_t>(t.int32_data());
  e.int64s = numbers_of<int64_t>(t.int64_data());
  e.uint64s = numbers_of<uint64_t>(t.uint64_data());
  if (!type_fault(e.type).empty()) return e;
  if (t.data_location() == ::onnx::TensorProto::EXTERNAL) {
    e.is_raw = true;
    const Bytes there = external(t, e);
    e.raw = there.bytes;
    e.raw_owner = there.owner;
  } else if (t.has_raw_data()) {
    e.is_raw = true;
    const auto bytes = std::make_shared<std::string>(std::move(*t.mutable_raw_data()));
    e.raw = *bytes;
    e.raw_owner = bytes;
  }
  return e;
}

Tensor Reader::tensor(::onnx::TensorProto& t, const std::string& title) {
  return decode(encoded(t, title));
}

/// What the type of an attribute holds; files before IR version 2 do not name it.
::onnx::AttributeProto::AttributeType kind_of(const ::onnx::AttributeProto& a) {
  using P = ::onnx::AttributeProto;
  if (a.type() != P::UNDEFINED) return a.type();
  if (a.has_f()) return P::FLOAT;
  if (a.has_i()) return P::INT;
  if (a.has_s()) return P::STRING;
  if (a.has_t()) return P::TENSOR;
  if (a.floats_size() > 0) return P::FLOATS;
  if (a.ints_size() > 0) return P::INTS;
  if (a.strings_size() > 0) return P::STRINGS;
  return P::UNDEFINED;
}

/// Those that need no other message.
Attribute plain_attribute(const ::onnx::AttributeProto& a) {
  using P = ::onnx::AttributeProto;
  using K = Attribute::Kind;
  Attribute to;
  const P::AttributeType kind = kind_of(a);
  if (kind == P::FLOAT) to.kind = K::real, to.reals = {a.f()};
  if (kind == P::INT) to.kind = K::integer, to.integers = {a.i()};
  if (kind == P::STRING) to.kind = K::text, to.texts = {a.s()};
  if (kind == P::TENSOR) to.kind = K::tensor;
  if (kind == P::FLOATS) to.kind = K::reals, to.reals = {a.floats().begin(), a.floats().end()};
  if (kind == P::INTS) to.kind = K::integers, to.integers = {a.ints().begin(), a.ints().end()};
  if (kind == P::STRINGS) to.kind = K::texts, to.texts = {a.strings().begin(), a.strings().end()};
  return to;
}

Attribute Reader::attribute(::onnx::AttributeProto& a, const Node& n) {
  const std::string title = fmt::format("attribute '{}' of {}", a.name(), n.title());
  if (!a.ref_attr_name().empty())
    fail(title + " refers to an attribute of a function, which we lack");
  Attribute to = plain_attribute(a);
  if (to.kind != Attribute::Kind::tensor) return to;
  to.refused = type_fault(a.t().data_type());
  if (to.refused.empty()) to.tensor = tensor(*a.mutable_t(), title);
  return to;
}

Node Reader::node(::onnx::NodeProto& n, int64_t position) {
  const std::string title = fmt::format("node {}", position);
  Node to;
  to.op = name(n.op_type(), title);
  to.name = name(n.name(), title);
  to.domain = name(n.domain() == "ai.onnx" ? "" : n.domain(), title);
  if (to.op.empty()) fail(title + " has no op_type");
  for (const std::string& s : n.input()) to.inputs.push_back(name(s, title));
  for (const std::string& s : n.output()) to.outputs.push_back(name(s, title));
  for (::onnx::AttributeProto& a : *n.mutable_attribute()) {
    const std::string called = name(a.name(), title);
    if (!to.attributes.emplace(called, attribute(a, to)).second)
      fail(fmt::format("{} has two attributes '{}'", to.title(), called));
  }
  return to;
}

/// Why a value of that type is no tensor of ours.
std::string fault_of(const ::onnx::TypeProto& t) {
  using P = ::onnx::TypeProto;
  switch (t.value_case()) {
    case P::kTensorType:
      return type_fault(t.tensor_type().elem_type());
    case P::kSequenceType:
      return "is a sequence";
    case P::kMapType:
      return "is a map";
    case P::kOptionalType:
      return "is optional";
    case P::kSparseTensorType:
      return "is a sparse tensor";
    case P::kOpaqueType:
      return "is opaque";
    case P::VALUE_NOT_SET:
      return "has no type";
  }
  throw InternalError("a type of no kind");
}

ValueInfo Reader::value_info(const ::onnx::ValueInfoProto& v, const char* what) const {
  ValueInfo to;
  to.name = name(v.name(), what);
  if (to.name.empty()) fail(fmt::format("{} without a name", what));
  to.refused = fault_of(v.type());
  if (!to.refused.empty()) return to;
  const auto& t = v.type().tensor_type();
  to.dtype = element_type(t.elem_type());
  to.has_shape = t.has_shape();
  for (const auto& d : t.shape().dim()) {
    Extent e;  // exporters write -1, too, for one that they do not know
    if (d.has_dim_value() && d.dim_value() >= 0) e = d.dim_value();
    if (d.has_dim_param() && !d.dim_param().empty())
      e = name(d.dim_param(), fmt::format("{} '{}'", what, to.name));
    to.dims.push_back(std::move(e));
  }
  return to;
}

std::vector<ValueInfo> Reader::inputs(const ::onnx::GraphProto& g, const Model& to) const {
  std::vector<ValueInfo> all;
  std::set<std::string> names;
  for (const auto& v : g.input()) {
    if (!names.insert(v.name()).second)
      fail(fmt::format("two inputs are called '{}'", printable(v.name())));
    if (!to.initializers.contains(v.name()) && !to.refused.contains(v.name()))
      all.push_back(value_info(v, "input"));
  }
  return all;
}

void Reader::opsets(const ::onnx::ModelProto& m, Model& to) const {
  for (const auto& o : m.opset_import()) {
    const std::string domain = name(o.domain() == "ai.onnx" ? "" : o.domain(), "opset_import");
    if (!to.opsets.emplace(domain, o.version()).second)
      fail(fmt::format("two opsets of domain '{}'", domain));
  }
  if (to.opsets.empty() && to.ir_version < 3) to.opsets[""] = 1;
}

void Reader::initializers(::onnx::GraphProto& g, Model& to) {
  for (::onnx::TensorProto& t : *g.mutable_initializer()) {
    const std::string called = name(t.name(), "initializer");
    const std::string fault = type_fault(t.data_type());
    const std::string title = fmt::format("tensor '{}'", called);
    if (called.empty()) fail("an initializer has no name");
    const bool is_new = fault.empty() ? to.initializers.emplace(called, tensor(t, title)).second
                                      : to.refused.emplace(called, fault).second;
    if (!is_new) fail(fmt::format("two initializers are called '{}'", called));
  }
}

/// "'a', 'b'" of the names of messages.
template <class List, class Name>
std::string list_names(const List& list, const Name& name) {
  constexpr size_t kMost = 20;
  std::vector<std::string> all;
  for (const auto& e : list)
    if (all.size() < kMost) all.push_back(fmt::format("'{}'", printable(name(e))));
  if (static_cast<size_t>(list.size()) > kMost)
    all.push_back(fmt::format("and {} more", list.size() - static_cast<int>(kMost)));
  return fmt::format("{}", fmt::join(all, ", "));
}

Model Reader::model(::onnx::ModelProto& m) {
  if (!m.has_graph()) fail("this is no ONNX model: it has no graph");
  ::onnx::GraphProto& g = *m.mutable_graph();
  if (g.sparse_initializer_size() > 0)
    fail(fmt::format(
        "sparse initializers, which we lack: {}",
        list_names(g.sparse_initializer(), [](const auto& s) { return s.values().name(); })));
  if (m.functions_size() > 0)
    fail(fmt::format("functions of the model, which we lack: {}",
                     list_names(m.functions(), [](const auto& f) { return f.name(); })),
         "inline them: onnx.inliner.inline_local_functions");
  Model to;
  to.graph_name = name(g.name(), "graph");
  to.ir_version = m.ir_version();
  opsets(m, to);
  initializers(g, to);
  to.inputs = inputs(g, to);
  std::set<std::string> names;
  for (const auto& v : g.output()) {
    to.outputs.push_back(value_info(v, "output"));
    if (!names.insert(v.name()).second) fail(fmt::format("two outputs are called '{}'", v.name()));
  }
  if (to.outputs.empty()) fail("the graph has no outputs");
  for (::onnx::NodeProto& n : *g.mutable_node()) to.nodes.push_back(node(n, std::ssize(to.nodes)));
  return to;
}

/// What `read` gives; its UserErrors name the file.
template <class F>
auto of_file(const std::string& path, const F& read) {
  try {
    return read();
  } catch (const UserError& e) {
    throw UserError(fmt::format("'{}': {}", path, e.message()), e.hint());
  }
}

}  // namespace

std::string Node::title() const {
  const std::string first = outputs.empty() ? "" : outputs[0];
  return fmt::format("{} '{}'", op, name.empty() ? first : name);
}

std::string to_string(const Extent& e) {
  if (const auto* number = std::get_if<int64_t>(&e)) return std::to_string(*number);
  const auto* name = std::get_if<std::string>(&e);
  return name != nullptr ? *name : "?";
}

Model read_model(const std::string& path) {
  ::onnx::ModelProto m;
  parse_file(path, m, "ONNX model");
  return of_file(path, [&] { return Reader(path).model(m); });
}

Tensor read_tensor(const std::string& path, std::string* name) {
  ::onnx::TensorProto t;
  parse_file(path, t, "ONNX tensor");
  return of_file(path, [&] {
    const std::string called = checked_name(t.name(), "a tensor");
    if (name != nullptr) *name = called;
    return Reader(path).tensor(t, fmt::format("tensor '{}'", called));
  });
}

}  // namespace tw::graph::onnx
