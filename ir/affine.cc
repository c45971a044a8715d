#include "ir/affine.h"

#include <algorithm>

namespace svod {
namespace {

// Content before addresses: the order may not depend on where nodes lie.
int Compare(const Atom& a, const Atom& b) {
  if (a.node != b.node) {
    const Hash128 &x = a.node->hash(), &y = b.node->hash();
    if (x.low != y.low) return x.low < y.low ? -1 : 1;
    if (x.high != y.high) return x.high < y.high ? -1 : 1;
  }
  return a.lane - b.lane;
}

int Compare(const Term& a, const Term& b) {
  for (size_t i = 0; i < std::min(a.atoms.size(), b.atoms.size()); ++i) {
    if (int order = Compare(a.atoms[i], b.atoms[i]); order != 0) return order;
  }
  return static_cast<int>(a.atoms.size()) - static_cast<int>(b.atoms.size());
}

int64_t WrappingAdd(int64_t a, int64_t b, bool& exact) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) exact = false;
  return sum;
}

int64_t WrappingMul(int64_t a, int64_t b, bool& exact) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) exact = false;
  return product;
}

// a + scale * b: a merge, since terms are sorted.
Affine AddScaled(const Affine& a, const Affine& b, int64_t scale) {
  Affine sum;
  sum.exact = a.exact && b.exact;
  sum.constant = WrappingAdd(a.constant, WrappingMul(b.constant, scale, sum.exact), sum.exact);
  sum.terms.reserve(a.terms.size() + b.terms.size());
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    int order = i == a.terms.size()   ? 1
                : j == b.terms.size() ? -1
                                      : Compare(a.terms[i], b.terms[j]);
    Term term = order <= 0 ? a.terms[i] : b.terms[j];
    int64_t left = order <= 0 ? a.terms[i++].coefficient : 0;
    int64_t right = order >= 0 ? WrappingMul(b.terms[j++].coefficient, scale, sum.exact) : 0;
    term.coefficient = WrappingAdd(left, right, sum.exact);
    if (term.coefficient != 0) sum.terms.push_back(std::move(term));
  }
  return sum;
}

}  // namespace

Affine Affine::Of(Atom atom) {
  Affine affine;
  affine.terms.push_back({{atom}, 1});
  return affine;
}

Affine operator+(const Affine& a, const Affine& b) { return AddScaled(a, b, 1); }
Affine operator-(const Affine& a, const Affine& b) { return AddScaled(a, b, -1); }

Affine operator*(const Affine& a, const Affine& b) {
  Affine product = AddScaled(Affine::Constant(0), a, b.constant);
  product.exact = product.exact && b.exact;
  for (const Term& factor : b.terms) {
    Affine part;
    part.exact = product.exact;
    for (const Term& term : a.terms) {
      Term both;
      both.atoms.resize(term.atoms.size() + factor.atoms.size());
      std::merge(term.atoms.begin(), term.atoms.end(), factor.atoms.begin(), factor.atoms.end(),
                 both.atoms.begin(),
                 [](const Atom& x, const Atom& y) { return Compare(x, y) < 0; });
      both.coefficient = WrappingMul(term.coefficient, factor.coefficient, part.exact);
      if (both.coefficient != 0) part.terms.push_back(std::move(both));
    }
    Term scaled = factor;
    scaled.coefficient = WrappingMul(a.constant, factor.coefficient, part.exact);
    if (scaled.coefficient != 0) part.terms.push_back(std::move(scaled));
    std::sort(part.terms.begin(), part.terms.end(),
              [](const Term& x, const Term& y) { return Compare(x, y) < 0; });
    product = product + part;
  }
  return product;
}

bool IsSmall(const Affine& affine) {
  if (affine.terms.size() > kMaxAffineTerms) return false;
  return std::all_of(affine.terms.begin(), affine.terms.end(),
                     [](const Term& term) { return term.atoms.size() <= kMaxAffineAtoms; });
}

Affine Cofactor(const Term& term, const Atom* atom) {
  if (term.atoms.size() == 1) return Affine::Constant(term.coefficient);
  Affine cofactor;
  cofactor.terms.push_back(term);
  auto& atoms = cofactor.terms[0].atoms;
  atoms.erase(atoms.begin() + (atom - term.atoms.begin()));
  return cofactor;
}

}  // namespace svod
