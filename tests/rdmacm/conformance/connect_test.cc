// SPDX-License-Identifier: BSD-2-Clause
// How does a connection come about, and what do both ends learn? (rdma_connect(3), rdma_accept(3))
#include "support/parties.h"

namespace weft::rdmacm_conformance {
namespace {

TEST(Connect, OfAListenerAndAClientOfOneProcessMovesMessages) {
  Parties two;
  two.ask();
  two.establish();
  Parties::expect_message(*two.client, *two.server, 'a');
  Parties::expect_message(*two.server, *two.client, 'b');
}

}  // namespace
}  // namespace weft::rdmacm_conformance
