//! Finds the routes whose pattern fits a path, in a trie of segments.

#[cfg(test)]
mod tests;

use super::{Captures, Pattern, Segment};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::ops::ControlFlow;

/// A leaf's routes. Most leaves have one, and it is read without following another pointer.
type Routes = SmallVec<[u32; 4]>;

/// All patterns of a site. A route is known by its position in what [`build`](Self::build) was given.
#[derive(Debug)]
pub struct PathRouter {
    /// The first one is the root: no segment read yet.
    nodes: Vec<Node>,
}

/// What the segments read so far lead to. Each node has one way to it from the root, so a walk comes to it at
/// most once.
#[derive(Debug, Default)]
struct Node {
    literals: HashMap<Box<str>, usize>,
    param: Option<usize>,
    /// Routes whose pattern ends here.
    end: Routes,
    /// Routes whose pattern has `{*rest}` here.
    rest: Routes,
}

impl PathRouter {
    /// Builds the trie. Patterns of one shape (the same literals and kinds of captures, whatever the
    /// names) share a leaf, which lists them in the order given. There are fewer than 2^32 of them.
    pub fn build<P: Borrow<Pattern>>(patterns: impl IntoIterator<Item = P>) -> PathRouter {
        let mut router = PathRouter {
            nodes: vec![Node::default()],
        };
        for (route, pattern) in (0..).zip(patterns) {
            router.insert(route, pattern.borrow());
        }
        router
    }

    fn insert(&mut self, route: u32, pattern: &Pattern) {
        let mut node = 0;
        for segment in pattern.segments() {
            let fresh = self.nodes.len();
            let next = match segment {
                Segment::Literal(text) => *self.nodes[node]
                    .literals
                    .entry_ref(&**text)
                    .or_insert(fresh),
                Segment::Param(_) => *self.nodes[node].param.get_or_insert(fresh),
                Segment::Rest(_) => {
                    self.nodes[node].rest.push(route);
                    return;
                }
            };
            if next == fresh {
                self.nodes.push(Node::default());
            }
            node = next;
        }
        self.nodes[node].end.push(route);
    }

    /// Calls `visitor` for each leaf that fits `path`, from the most specific to the least
    /// ([`Pattern::cmp_specificity`]), with the routes of the leaf in their order and what they
    /// capture. It says whether to go on with the next leaf; what it breaks with is the result.
    ///
    /// `path` is a normal path; a text that does not start with `/` fits nothing. Costs a hash per
    /// segment for each node that fits, and recursion no deeper than
    /// [`MAX_SEGMENTS`](super::MAX_SEGMENTS), whatever the path.
    pub fn visit<T>(
        &self,
        path: &str,
        mut visitor: impl FnMut(&[u32], &Captures) -> ControlFlow<T>,
    ) -> Option<T> {
        if !path.starts_with('/') {
            return None;
        }
        let mut walk = Walk {
            nodes: &self.nodes,
            path,
            captures: Captures::default(),
            visitor: &mut visitor,
        };
        walk.node(&self.nodes[0], Some(1)).break_value()
    }
}

struct Walk<'a, V> {
    nodes: &'a [Node],
    path: &'a str,
    captures: Captures,
    visitor: &'a mut V,
}

impl<'a, V> Walk<'a, V> {
    /// `next` is where the next segment begins, `None` when the path has no more.
    fn node<T>(&mut self, node: &'a Node, next: Option<usize>) -> ControlFlow<T>
    where
        V: FnMut(&[u32], &Captures) -> ControlFlow<T>,
    {
        let path = self.path;
        let Some(start) = next else {
            self.leaf(&node.end)?;
            return self.capture(path.len(), path.len(), |walk| walk.leaf(&node.rest));
        };
        let slash = memchr::memchr(b'/', &path.as_bytes()[start..]);
        let end = slash.map_or(path.len(), |length| start + length);
        let after = slash.map(|_| end + 1);
        if let Some(&literal) = node.literals.get(&path[start..end]) {
            self.node(&self.nodes[literal], after)?;
        }
        if let Some(param) = node.param
            && start < end
        {
            self.capture(start, end, |walk| walk.node(&walk.nodes[param], after))?;
        }
        self.capture(start, path.len(), |walk| walk.leaf(&node.rest))
    }

    /// Does `then` with one capture more.
    fn capture<T>(
        &mut self,
        start: usize,
        end: usize,
        then: impl FnOnce(&mut Self) -> ControlFlow<T>,
    ) -> ControlFlow<T> {
        self.captures.push(start, end);
        let flow = then(self);
        self.captures.pop();
        flow
    }

    fn leaf<T>(&mut self, routes: &[u32]) -> ControlFlow<T>
    where
        V: FnMut(&[u32], &Captures) -> ControlFlow<T>,
    {
        if routes.is_empty() {
            return ControlFlow::Continue(());
        }
        (self.visitor)(routes, &self.captures)
    }
}
