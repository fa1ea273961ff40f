// SPDX-License-Identifier: BSD-2-Clause
// What becomes of a C++ error at the border to C?
#pragma once

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "base/result.h"

namespace weft::verbs {

// The number in an enumeration of C that the program has set: it may be none of its values, which
// C++ must not read as one.
template <class Enumeration>
unsigned number_in(const Enumeration& value) {
  unsigned number = 0;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// Returns null with errno set, as calls that make an object do.
inline std::nullptr_t null_with(int code) {
  errno = code;
  return nullptr;
}

// Returns -1 with errno set.
inline int minus_one_with(int code) {
  errno = code;
  return -1;
}

// Returns an errno value that is also in errno, as calls that return a status do: some programs
// print the one and some the other.
inline int status_with(int code) {
  errno = code;
  return code;
}

// Runs `body`, which returns Result<T*>, and lets no exception out: null with errno set.
template <class Body>
auto pointer_at_border(Body&& body) -> std::remove_reference_t<decltype(body().value())> {
  try {
    auto made = std::forward<Body>(body)();
    if (made) return made.value();
    return null_with(made.error().code);
  } catch (const std::bad_alloc&) {
    return null_with(ENOMEM);
  } catch (const std::exception&) {
    return null_with(EIO);
  }
}

// errno values of verbs are those of Weft's errors.
inline int errno_of(const Error& error) { return error.code; }

// Calls make(), which returns an object or null with errno; ENOMEM where memory is short.
template <class Public, class Make>
Public* at_c_border(const Make& make) {
  try {
    return make();
  } catch (const std::exception&) {
    return null_with(ENOMEM);
  }
}

// The same for functions that return an errno value.
template <class Call>
int status_at_c_border(const Call& call) {
  try {
    const int code = call();
    return code != 0 ? status_with(code) : 0;
  } catch (const std::exception&) {
    return status_with(ENOMEM);
  }
}

}  // namespace weft::verbs
