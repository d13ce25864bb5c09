/** Contains the errors of a component. */
import { Component, type ComponentChildren } from "preact";

/** Props of a boundary. */
export interface ErrorBoundaryProps {
  /** Rendered instead of the children after one of them threw. */
  fallback: ComponentChildren;
  /** A new value renders the children again. */
  resetKey?: unknown;
  children: ComponentChildren;
}

/** Renders its children, or the fallback after one of them threw while rendering or in an effect. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { failedKey?: { value: unknown } }> {
  override componentDidCatch(error: unknown): void {
    // The fallback tells the reader; the console has the details.
    console.error(error);
    this.setState({ failedKey: { value: this.props.resetKey } });
  }

  override render({ fallback, resetKey, children }: ErrorBoundaryProps) {
    const { failedKey } = this.state;
    return failedKey !== undefined && Object.is(failedKey.value, resetKey) ? fallback : children;
  }
}
