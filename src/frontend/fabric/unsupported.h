// SPDX-License-Identifier: BSD-2-Clause
// What do the entries of libfabric's operation tables do that weft does not offer?
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <concepts>

namespace weft::fabric {

// Converts to a function of any signature that returns a signed integer; it ignores its arguments
// and returns -FI_ENOSYS. Use: `table.join = kUnsupported;`
struct Unsupported {
  template <std::signed_integral Answer, class... Arguments>
  using Function = Answer (*)(Arguments...);

  template <std::signed_integral Answer, class... Arguments>
  constexpr operator Function<Answer, Arguments...>() const {
    return [](Arguments...) -> Answer { return -FI_ENOSYS; };
  }
};
inline constexpr Unsupported kUnsupported;

// A table of operations with its size filled in and every entry refusing with -FI_ENOSYS. A
// front-end object takes one and replaces what it offers. Entries that do not return a status
// (fi_cntr_read, fi_eq_strerror ...) are null: every object offers those.
template <class Table>
Table unsupported_operations() = delete;

template <>
inline fi_ops unsupported_operations<fi_ops>() {
  return {sizeof(fi_ops), kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,   kUnsupported, kUnsupported};
}

template <>
inline fi_ops_fabric unsupported_operations<fi_ops_fabric>() {
  return {sizeof(fi_ops_fabric), kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,          kUnsupported, kUnsupported};
}

template <>
inline fi_ops_domain unsupported_operations<fi_ops_domain>() {
  return {sizeof(fi_ops_domain), kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,          kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,          kUnsupported, kUnsupported, kUnsupported};
}

template <>
inline fi_ops_mr unsupported_operations<fi_ops_mr>() {
  return {sizeof(fi_ops_mr), kUnsupported, kUnsupported, kUnsupported};
}

template <>
inline fi_ops_ep unsupported_operations<fi_ops_ep>() {
  return {sizeof(fi_ops_ep), kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,      kUnsupported, kUnsupported, kUnsupported};
}

template <>
inline fi_ops_cm unsupported_operations<fi_ops_cm>() {
  return {sizeof(fi_ops_cm), kUnsupported, kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,      kUnsupported, kUnsupported, kUnsupported, kUnsupported};
}

template <>
inline fi_ops_msg unsupported_operations<fi_ops_msg>() {
  return {sizeof(fi_ops_msg), kUnsupported, kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,       kUnsupported, kUnsupported, kUnsupported, kUnsupported};
}

template <>
inline fi_ops_tagged unsupported_operations<fi_ops_tagged>() {
  return {sizeof(fi_ops_tagged), kUnsupported, kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,          kUnsupported, kUnsupported, kUnsupported, kUnsupported};
}

template <>
inline fi_ops_rma unsupported_operations<fi_ops_rma>() {
  return {sizeof(fi_ops_rma), kUnsupported, kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,       kUnsupported, kUnsupported, kUnsupported, kUnsupported};
}

template <>
inline fi_ops_atomic unsupported_operations<fi_ops_atomic>() {
  return {sizeof(fi_ops_atomic), kUnsupported, kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,          kUnsupported, kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,          kUnsupported, kUnsupported, kUnsupported};
}

template <>
inline fi_ops_collective unsupported_operations<fi_ops_collective>() {
  return {sizeof(fi_ops_collective),
          kUnsupported,
          kUnsupported,
          kUnsupported,
          kUnsupported,
          kUnsupported,
          kUnsupported,
          kUnsupported,
          kUnsupported,
          kUnsupported,
          kUnsupported,
          kUnsupported};
}

template <>
inline fi_ops_av unsupported_operations<fi_ops_av>() {
  return {sizeof(fi_ops_av), kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,      kUnsupported, nullptr,      kUnsupported};
}

template <>
inline fi_ops_cq unsupported_operations<fi_ops_cq>() {
  return {sizeof(fi_ops_cq), kUnsupported, kUnsupported, kUnsupported,
          kUnsupported,      kUnsupported, kUnsupported, nullptr};
}

template <>
inline fi_ops_cntr unsupported_operations<fi_ops_cntr>() {
  return {sizeof(fi_ops_cntr), nullptr,      nullptr,      kUnsupported,
          kUnsupported,        kUnsupported, kUnsupported, kUnsupported};
}

template <>
inline fi_ops_eq unsupported_operations<fi_ops_eq>() {
  return {sizeof(fi_ops_eq), kUnsupported, kUnsupported, kUnsupported, kUnsupported, nullptr};
}

// The same for objects that offer nothing of a table.
template <class Table>
Table* no_operations() {
  static Table table = unsupported_operations<Table>();
  return &table;
}

}  // namespace weft::fabric
