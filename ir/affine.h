// Affine: an integer expression as a sum of products, to compare positions and sizes by.
// Included by the range analysis and what proves accesses. Must not make nodes.
#ifndef SVOD_IR_AFFINE_H_
#define SVOD_IR_AFFINE_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/uop.h"

namespace svod {

// One lane of an integer node that is not taken apart further; lane 0 of a scalar.
struct Atom {
  const UOp* node;
  int lane;
  bool operator==(const Atom&) const = default;
};

// coefficient * atom * atom ...; atoms are sorted by content, one may stand several times.
struct Term {
  absl::InlinedVector<Atom, 2> atoms;
  int64_t coefficient;
  bool operator==(const Term&) const = default;
};

// The sum of `terms`, sorted by content and with no two of the same atoms, and of `constant`.
// Modulo 2^64 it always equals the node that it came from. It equals it as a true integer when
// `exact`: no operation on the way can wrap.
struct Affine {
  std::vector<Term> terms;
  int64_t constant = 0;
  bool exact = true;

  static Affine Constant(int64_t value) { return {{}, value, true}; }
  static Affine Of(Atom atom);

  bool is_constant() const { return terms.empty(); }
};

// Larger sums and products are not worth comparing; they become atoms.
inline constexpr size_t kMaxAffineTerms = 24;
inline constexpr size_t kMaxAffineAtoms = 4;

// Exact only if both are and no coefficient overflows. Terms beyond the limits are not cut: see
// IsSmall.
Affine operator+(const Affine& a, const Affine& b);
Affine operator-(const Affine& a, const Affine& b);
Affine operator*(const Affine& a, const Affine& b);
bool IsSmall(const Affine& affine);

// `term` without one of its atoms, which `atom` points to.
Affine Cofactor(const Term& term, const Atom* atom);

}  // namespace svod

#endif  // SVOD_IR_AFFINE_H_
