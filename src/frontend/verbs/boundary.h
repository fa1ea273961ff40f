// SPDX-License-Identifier: BSD-2-Clause
// How do results cross the border to the program? As errno values, never as exceptions.
#pragma once

#include <cerrno>
#include <new>

#include "base/result.h"

namespace weft::verbs {

// errno values of verbs are those of Weft's errors.
inline int errno_of(const Error& error) { return error.code; }

// For functions that return an object: null, with errno.
template <class Object>
Object* refuse(int error) {
  errno = error;
  return nullptr;
}

// Calls make(), which returns an object or null with errno; ENOMEM where memory is short.
template <class Object, class Make>
Object* at_c_border(const Make& make) {
  try {
    return make();
  } catch (...) {
    return refuse<Object>(ENOMEM);
  }
}

// The same for functions that return an errno value.
template <class Call>
int status_at_c_border(const Call& call) {
  try {
    const int error = call();
    if (error != 0) errno = error;
    return error;
  } catch (...) {
    return errno = ENOMEM;
  }
}

}  // namespace weft::verbs
