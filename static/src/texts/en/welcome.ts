/** The first visit. */

/** English. */
export const welcome = {
  firstRun: {
    title: "Connect a language model",
    text:
      "Only the built-in demonstration answers now, and it is no language model. Parlor can look for one that runs on this machine.",
    find: "Find a model",
    manual: "Enter an address",
    later: "Not now",
  },

  welcome: {
    step: (at: number, of: number) => `Step ${at} of ${of}`,
    titles: { model: "Who answers", name: "Your name", passkey: "Protect this Parlor with a passkey" },
    modelText: "Parlor needs a language model to talk to. Servers that run on this machine are looked for now.",
    modelThere: (name: string) => `“${name}” answers. You can change that in the settings at any time.`,
    nameHint: "How characters and models may address you. It stays on this server, in what your models are sent.",
    passkeyLocal:
      "This machine comes in without one. A passkey is asked for where Parlor is reached from elsewhere, and every address makes its own; one for this address is possible now, too.",
    passkeyThere: "This address opens with a passkey already. Further devices are added under Settings, Privacy.",
    goOn: "Continue",
    skip: "Skip",
    start: "Start chatting",
    container:
      "Parlor runs in a container and looks only inside it. Have it look at the machine around it: set this variable, as compose.yaml does, and start the container anew.",
    elsewhere: (hosts: string) =>
      `Parlor looked at ${hosts}. A server there answers only if it listens on more than its own machine.`,
    listen: "Each server is started so:",
    listenNote: "Other machines of your network reach it then as well.",
  },
};
