/** Buttons, notices, and components without input. */
import { useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";
import { Button, IconButton, LinkButton } from "../components/Button.tsx";
import { Icon, ICON_NAMES } from "../components/Icon.tsx";
import { lazy } from "../components/Lazy.tsx";
import { EmptyState, ErrorNote, Notice } from "../components/Notice.tsx";
import { Progress } from "../components/Progress.tsx";
import { Tabs } from "../components/Tabs.tsx";

const NeverThere = lazy<{ name: string }>(() => new Promise(() => {}));
const Failing = lazy<{ name: string }>(() => Promise.reject(new Error("no such file")));

/** Each kind of button in each state. */
export function ButtonSamples() {
  return (
    <section>
      <h2>Buttons</h2>
      <div class="actions-row">
        <Button kind="primary">Primary</Button>
        <Button>Plain</Button>
        <Button kind="quiet">Quiet</Button>
        <Button icon="search">With an icon</Button>
        <Button isBusy>Busy</Button>
        <Button isDisabled>Disabled</Button>
        <Button kind="primary" isDisabled>Disabled</Button>
        <LinkButton href="#main" icon="plus">A link</LinkButton>
      </div>
      <div class="actions-row">
        <IconButton icon="copy" label="Copy" />
        <IconButton icon="wrap" label="Wrap, pressed" isPressed />
        <IconButton icon="trash" label="Delete, disabled" isDisabled />
        <IconButton icon="send" label="Send" kind="primary" />
        <IconButton icon="send" label="Send, disabled" kind="primary" isDisabled />
      </div>
      <h3>Icons</h3>
      <div class="actions-row">
        {ICON_NAMES.map((name) => (
          <span key={name} title={name}>
            <Icon name={name} />
          </span>
        ))}
      </div>
    </section>
  );
}

/** Each tone of a notice, and failures. */
export function NoticeSamples() {
  const error = new ApiError(502, {
    code: "upstream_error",
    message: `Can't reach the model at "http://127.0.0.1:8080": connection refused`,
    request_id: "01890a5d-ac96-774b-bcce-b302099a8057",
    issues: [{ path: "base_url", message: "Nothing listens there" }],
  });
  return (
    <section>
      <h2>Notices and failures</h2>
      <Notice tone="info" title="Info">Something to know.</Notice>
      <Notice tone="warning" title="Warning">Something to look at.</Notice>
      <Notice tone="danger" title="Danger">Something that went wrong.</Notice>
      <ErrorNote title="The model could not be asked" error={error} onRetry={() => {}}>
        Start the server first.
      </ErrorNote>
    </section>
  );
}

/** Progress, tabs, empty states, lazy components. */
export function ContentSamples() {
  const [tab, setTab] = useState<"one" | "two" | "three">("one");
  return (
    <section>
      <h2>Progress</h2>
      <Progress label="Download" value={0.3} text="12 of 40 MB" />
      <Progress label="Done" value={1} text="40 of 40 MB" />
      <Progress label="Unknown" value={null} text="working" />
      <h2>Tabs</h2>
      <Tabs
        label="Sample tabs"
        tabs={[{ id: "one", title: "One" }, { id: "two", title: "Two" }, { id: "three", title: "Three" }]}
        current={tab}
        onSelect={setTab}
      >
        <p>View {tab}.</p>
      </Tabs>
      <h2>Empty states</h2>
      <EmptyState level={3} title="Nothing here yet" text="A sentence on what goes here.">
        <Button kind="primary">The next step</Button>
      </EmptyState>
      <h2>Parts on demand</h2>
      <NeverThere name="loading" />
      <Failing name="failed" />
    </section>
  );
}
