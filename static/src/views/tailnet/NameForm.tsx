/**
 * The form of the node's name: to turn it on, or to rename it.
 *
 * Props: `node`, `hostname` (the current one), `action` (label of the button); `isFirst?` (it turns the node on).
 */
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Notice } from "../../components/Notice.tsx";
import type { TailnetNode } from "../../state/app/tailnet.ts";
import { texts } from "../../texts/texts.ts";
import { useAction } from "../use_action.ts";

/** One DNS label, as the server accepts it. */
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Validates the name before it asks the server. */
export function NameForm(
  { node, hostname, action, isFirst = false }: {
    node: TailnetNode;
    hostname: string;
    action: string;
    isFirst?: boolean;
  },
) {
  const t = texts.tailnet;
  const [typed, setTyped] = useState<string>();
  const [isWrong, setWrong] = useState(false);
  const name = (typed ?? hostname).trim().toLowerCase();
  const { isBusy, failure, run } = useAction(async () => {
    await node.enable(name);
    setTyped(undefined);
  });
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        setWrong(!LABEL.test(name));
        if (LABEL.test(name)) void run();
      }}
    >
      <TextField
        label={t.name}
        hint={t.nameHint}
        error={isWrong ? t.nameWrong : undefined}
        maxLength={63}
        isMono
        value={typed ?? hostname}
        onInput={setTyped}
      />
      {failure && <Notice tone="danger" title={t.notOn}>{failure}</Notice>}
      <div class="actions-row">
        <Button
          type="submit"
          kind={isFirst ? "primary" : "plain"}
          isBusy={isBusy}
          isDisabled={!isFirst && name === hostname}
        >
          {action}
        </Button>
      </div>
    </form>
  );
}
