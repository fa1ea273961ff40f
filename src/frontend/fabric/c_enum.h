// SPDX-License-Identifier: BSD-2-Clause
// What number did an application put into an attribute of an enumerated type?
#pragma once

#include <cstring>

namespace weft::fabric {

// The number in `value`, which may be one that the enumeration does not have: C lets it in, and C++
// must not load it as what it claims to be.
template <class Enumeration>
int number_of(const Enumeration& value) {
  static_assert(sizeof(Enumeration) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

}  // namespace weft::fabric
