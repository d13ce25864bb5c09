/**
 * Buttons, with words or with an icon alone.
 *
 * Button: `children`; `onClick?`, `kind?` ("primary", "plain", "quiet"), `icon?`, `type?`, `isDisabled?`, `isBusy?`, `isExpanded?`, `form?`, `label?`.
 * LinkButton: `href`, `children`; `kind?`, `icon?`.
 * IconButton: `icon`, `label`; `onClick?`, `kind?`, `isPressed?`, `isExpanded?`, `isDisabled?`, `type?`.
 */
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./Icon.tsx";

/** What a button with words takes. */
export interface ButtonProps {
  children: ComponentChildren;
  onClick?: () => void;
  kind?: "primary" | "plain" | "quiet";
  icon?: IconName;
  type?: "button" | "submit";
  isDisabled?: boolean;
  /** The action runs: the button stays in place and takes no second click. */
  isBusy?: boolean;
  /** Whether what it shows and hides is shown. */
  isExpanded?: boolean;
  /** Id of the form it sends, where it stands outside of it. */
  form?: string;
  /** A fuller name where the words alone do not tell which thing they are about. */
  label?: string;
}

/** A button with words. */
export function Button(props: ButtonProps) {
  const { kind = "plain", type = "button", isDisabled = false, isBusy = false } = props;
  return (
    <button
      type={type}
      class={`button ${kind}`}
      onClick={props.onClick}
      disabled={isDisabled || isBusy}
      form={props.form}
      aria-busy={isBusy}
      aria-expanded={props.isExpanded}
      aria-label={props.label}
    >
      {isBusy ? <span class="spinner" aria-hidden="true" /> : props.icon && <Icon name={props.icon} />}
      <span>{props.children}</span>
    </button>
  );
}

/** A link that looks like a button: it leads to an address. */
export function LinkButton(
  { href, children, kind = "plain", icon }: {
    href: string;
    children: ComponentChildren;
    kind?: ButtonProps["kind"];
    icon?: IconName;
  },
) {
  return (
    <a class={`button ${kind}`} href={href}>
      {icon && <Icon name={icon} />}
      <span>{children}</span>
    </a>
  );
}

/** A button that is only an icon; its label is its name and its tooltip. */
export function IconButton(
  { icon, label, onClick, kind = "quiet", isPressed, isExpanded, isDisabled, type = "button" }: {
    icon: IconName;
    label: string;
    onClick?: () => void;
    kind?: "quiet" | "primary";
    isPressed?: boolean;
    isExpanded?: boolean;
    isDisabled?: boolean;
    type?: "button" | "submit";
  },
) {
  return (
    <button
      type={type}
      class={`icon-button ${kind}`}
      title={label}
      aria-label={label}
      aria-pressed={isPressed}
      aria-expanded={isExpanded}
      disabled={isDisabled}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}
