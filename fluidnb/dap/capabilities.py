"""The capabilities of the adapter, as the protocol has them."""

from __future__ import annotations

from typing import Any

CAPABILITIES: dict[str, Any] = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsLogPoints": True,
    "supportsDataBreakpoints": True,
    "supportsBreakpointLocationsRequest": True,
    "supportsEvaluateForHovers": True,
    "supportsSetVariable": True,
    "supportsSetExpression": True,
    "supportsStepBack": True,
    "supportsSteppingGranularity": True,
    "supportsRestartRequest": True,
    "supportsRestartFrame": True,
    "supportsCompletionsRequest": True,
    "supportsExceptionInfoRequest": True,
    "supportsExceptionFilterOptions": True,
    "supportsLoadedSourcesRequest": True,
    "supportsTerminateRequest": True,
    "supportTerminateDebuggee": True,
    "exceptionBreakpointFilters": [
        {
            "filter": "error", "label": "An operator fails", "default": True,
            "description": "Pauses at the operator, before anything has changed.",
        },
        {
            "filter": "nan", "label": "NaN or infinity", "default": False, "supportsCondition": True,
            "description": "Stops after the operator that writes the first number that is not finite.",
            "conditionDescription": "the largest absolute value allowed, for example 1e6",
        },
    ],
}  # fmt: skip
