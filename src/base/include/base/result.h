// SPDX-License-Identifier: BSD-2-Clause
// How does a function say that it failed? With a value: Result<T> or Status.
#pragma once

#include <cerrno>
#include <string>
#include <utility>
#include <variant>

namespace weft {

// Why something failed. `code` is an errno value, `message` names the thing, the value and the
// limit. Each front end translates the code once, at its border.
struct Error {
  int code = EINVAL;
  std::string message;
};

// Either a T or the Error that explains its absence. value() may be called only after ok().
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}

  // True when a value is present.
  bool ok() const { return content_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // The value; only after ok().
  T& value() & { return *std::get_if<0>(&content_); }
  const T& value() const& { return *std::get_if<0>(&content_); }
  T&& value() && { return std::move(*std::get_if<0>(&content_)); }

  // The error; only when not ok().
  const Error& error() const { return *std::get_if<1>(&content_); }

 private:
  std::variant<T, Error> content_;
};

// Success, or the Error that prevented it.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)), failed_(true) {}

  // True when nothing failed.
  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }

  // The error; only when not ok().
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace weft
