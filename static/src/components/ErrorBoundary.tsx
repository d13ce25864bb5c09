/** Keeps an error of a component from taking the components around it along. */
import { Component, type ComponentChildren } from "preact";

/** What a boundary takes. */
export interface ErrorBoundaryProps {
  /** Shown in place of the children once one of them has thrown. */
  fallback: ComponentChildren;
  /** With another value the children get another try. */
  resetKey?: unknown;
  children: ComponentChildren;
}

/** Shows its children, or the fallback after one of them threw while rendering or in an effect. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { failedKey?: { value: unknown } }> {
  override componentDidCatch(error: unknown): void {
    // The fallback says what the reader needs to know; the console has the rest.
    console.error(error);
    this.setState({ failedKey: { value: this.props.resetKey } });
  }

  override render({ fallback, resetKey, children }: ErrorBoundaryProps) {
    const { failedKey } = this.state;
    return failedKey !== undefined && Object.is(failedKey.value, resetKey) ? fallback : children;
  }
}
