/** Skips rendering when nothing that went in has changed; Preact has this only in its compatibility package. */
import { Component, type ComponentChildren, type ComponentType, h } from "preact";

/** Wraps a component that depends on its props alone. */
export function memo<P extends object>(view: (props: P) => ComponentChildren): ComponentType<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const before = this.props as Record<string, unknown>;
      const after = next as Record<string, unknown>;
      return Object.keys(after).some((key) => after[key] !== before[key]);
    }

    override render() {
      return h(view as ComponentType<P>, this.props as P);
    }
  };
}
