// Improves the pages where scripts run. Every page works without this file; all words come from the page.
"use strict";

// The time left, counted down without reading it out each second.
const left = document.getElementById("left");
if (left) {
  const end = performance.now() + Number(left.dataset.seconds) * 1000;
  const show = () => {
    const seconds = Math.max(0, Math.round((end - performance.now()) / 1000));
    if (seconds === 0) {
      left.textContent = left.dataset.over;
      left.setAttribute("role", "status");
      for (const button of document.querySelectorAll("main button")) button.disabled = true;
      return;
    }
    if (seconds < 3600) {
      left.textContent = Math.floor(seconds / 60) + ":" + String(seconds % 60).padStart(2, "0");
    }
    setTimeout(show, 1000);
  };
  show();
}

// A second click sends nothing.
for (const form of document.forms) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
    const button = event.submitter;
    if (button && form.dataset.busy) button.textContent = form.dataset.busy;
  });
}

// A page that comes back from the browser's history holds nothing that was entered.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.forms) {
    form.reset();
    delete form.dataset.sent;
  }
  location.reload();
});

// Closing the tab works only where the browser allows it.
const close = document.getElementById("close");
if (close) {
  close.hidden = false;
  close.querySelector("button").addEventListener("click", () => {
    window.close();
    setTimeout(() => { close.textContent = close.dataset.failed; }, 300);
  });
}

// The code can be copied where the browser allows it.
const copy = document.getElementById("copy");
if (copy && navigator.clipboard) {
  copy.hidden = false;
  const button = copy.querySelector("button");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById("code").textContent.replaceAll(" ", ""));
    button.textContent = copy.dataset.copied;
  });
}

// What is shown in the console is kept up to date, unless somebody is using it.
const live = document.querySelector("[data-live]");
if (live) {
  const refresh = async () => {
    if (!document.hidden && !live.contains(document.activeElement)) {
      const answer = await fetch(location.href, { redirect: "error" }).catch(() => null);
      if (answer?.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById(live.id);
        if (fresh && !live.contains(document.activeElement)) live.replaceChildren(...fresh.childNodes);
      }
    }
    setTimeout(refresh, Number(live.dataset.live) * 1000);
  };
  setTimeout(refresh, Number(live.dataset.live) * 1000);
}
