// SPDX-License-Identifier: BSD-2-Clause
// What becomes of a C++ error at the border to C?
#pragma once

#include <cerrno>
#include <exception>
#include <new>

#include "base/result.h"

namespace weft::rdmacm {

// Returns -1 with errno set, as calls of librdmacm do.
inline int minus_one_with(int code) {
  errno = code;
  return -1;
}

// Calls `call`, which returns a Status, and lets no exception out.
template <class Call>
int at_c_border(const Call& call) {
  try {
    const Status done = call();
    return done ? 0 : minus_one_with(done.error().code);
  } catch (const std::bad_alloc&) {
    return minus_one_with(ENOMEM);
  } catch (const std::exception&) {
    return minus_one_with(EIO);
  }
}

// The error of a call of libibverbs or libc that has set errno.
inline Error error_of_errno(const char* what) { return {errno != 0 ? errno : EIO, what}; }
// The Status of a verb that returns an errno value.
inline Status status_of(int code, const char* what) {
  if (code == 0) return {};
  return Error{code < 0 ? -code : code, what};
}

}  // namespace weft::rdmacm
