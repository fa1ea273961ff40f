// SPDX-License-Identifier: BSD-2-Clause
// How is a shared library used that may not be installed?
#pragma once

#include <string>

#include "base/result.h"

namespace weft::os {

// A library that is loaded at run time, and stays loaded: drivers have threads of their own.
class Library {
 public:
  // Searched for as dlopen(3) does. Error: ENOSYS, with the loader's words.
  static Result<Library> open(const char* name);

  // Sets `function` to the function of that name. False when there is none.
  template <class Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(address_of(name));
    return function != nullptr;
  }

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* address_of(const char* name) const;

  void* handle_;
};

}  // namespace weft::os
